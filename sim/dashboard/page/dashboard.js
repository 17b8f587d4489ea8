// The dashboard: reads the data block of its own page, and shows what the address behind '#' asks for. Nothing is fetched.
'use strict';
(() => {
const {data, $, element, format, table, chart} = page;

// ---- numbers, addresses
const link = (to, text) => element('a', {href: '#' + to}, text);
function change(now, old) {
  if (now === null || old === null || old === undefined || old === 0) return '';
  const p = (now - old) / Math.abs(old) * 100;
  return (p > 0 ? '+' : '') + (Math.abs(p) >= 0.005 || p === 0 ? p.toFixed(2) : p.toExponential(0)) + ' %';
}
const day = (seconds) => new Date(seconds * 1000).toISOString().replace('T', ' ').slice(0, 16);
const short = (commit) => commit ? commit.slice(0, 10) : '–';
const part = encodeURIComponent;

// ---- the data: runs by series; values of a metric by run
const series = data.series.map((s, i) => ({...s, index: i, runs: [], title: `${s.name} on ${s.target}, ${s.chips} chip${s.chips === 1 ? '' : 's'}`}));
data.runs.forEach((r, i) => { r.index = i; series[r.series].runs.push(r); });
const metricIndex = new Map(data.metrics.map((m, i) => [m.name, i]));
// One value stands for a metric that never moved.
function valuesOf(s, metric) {
  const packed = data.values[s.index][metric];
  if (packed === undefined) return null;
  return Array.isArray(packed) ? packed : s.runs.map(() => packed);
}
const families = ['cycles', 'tokens_per_s', 'causes', 'collectives', 'stages', 'links', 'memories', 'buffers', 'macs', 'host'];
function metricsOf(s) {
  const rank = (m) => families.indexOf(data.metrics[m].name.split('.')[0]);
  return Object.keys(data.values[s.index]).map(Number).sort((a, b) => rank(a) - rank(b) || (data.metrics[a].name < data.metrics[b].name ? -1 : 1));
}
const last = (list) => list === null || list.length === 0 ? null : list[list.length - 1];
function worse(metric, now, old) {
  if (now === null || old === null || now === old) return false;
  return metric.better === 1 ? now < old : metric.better === 0 ? now > old : false;
}
const acceptancesOf = (s, metric) => data.accepted.filter((a) => data.runs[a.run].series === s.index && (a.metric === '' || a.metric === metric));

// ---- small drawings that need no library
function sparkline(values, failed) {
  const known = values.map((v, i) => [i, v]).filter((p) => p[1] !== null);
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('class', 'spark');
  svg.setAttribute('viewBox', '0 0 120 26');
  svg.setAttribute('role', 'img');
  if (known.length === 0) return svg;
  // At most two points a pixel: the least and the greatest of each stretch.
  const stretch = Math.max(1, Math.ceil(known.length / 120));
  const shown = [];
  for (let i = 0; i < known.length; i += stretch) {
    let low = known[i], high = known[i];
    for (let j = i; j < Math.min(i + stretch, known.length); ++j) {
      if (known[j][1] < low[1]) low = known[j];
      if (known[j][1] > high[1]) high = known[j];
    }
    shown.push(...(low[0] <= high[0] ? [low, high] : [high, low]));
  }
  let least = Infinity, most = -Infinity;
  for (const [, v] of shown) { least = Math.min(least, v); most = Math.max(most, v); }
  const x = (i) => 3 + i / Math.max(1, values.length - 1) * 114;
  const y = (v) => most === least ? 13 : 23 - (v - least) / (most - least) * 20;
  const line = document.createElementNS(svg.namespaceURI, 'path');
  line.setAttribute('d', shown.map(([i, v], n) => `${n ? 'L' : 'M'}${x(i).toFixed(1)} ${y(v).toFixed(1)}`).join(''));
  const dot = document.createElementNS(svg.namespaceURI, 'circle');
  const [i, v] = known[known.length - 1];
  dot.setAttribute('cx', x(i)); dot.setAttribute('cy', y(v)); dot.setAttribute('r', 2.5);
  if (failed) dot.setAttribute('class', 'bad');
  svg.append(line, dot);
  return svg;
}

// ---- views
function verdictOf(r) {
  const bad = r.verdict !== 'pass' || r.gate === 1;
  return element('span', {class: bad ? 'bad' : 'good'}, r.verdict === 'pass' && r.gate === 1 ? 'pass, gate failed' : r.verdict);
}

function overview() {
  const wanted = $('search').value.toLowerCase();
  const cycles = metricIndex.get('cycles.simulated');
  const rows = [];
  for (const s of series) {
    if (s.runs.length === 0 || (wanted && !s.title.toLowerCase().includes(wanted))) continue;
    const r = last(s.runs), values = valuesOf(s, cycles);
    const before = values && values.length > 1 ? values[values.length - 2] : null;
    const delta = values ? change(last(values), before) : '';
    rows.push([link(`/program/${part(s.name)}/${part(s.target)}/${s.chips}`, s.name), s.target, String(s.chips), verdictOf(r),
      format(last(values)), element('span', {class: delta.startsWith('+') && delta !== '+0.00 %' ? 'bad' : 'dim'}, delta),
      sparkline(values || [], r.gate === 1), String(s.runs.length), short(r.commit), day(r.time)]);
  }
  return [element('h1', {}, 'Programs and targets'),
    element('p', {class: 'dim'}, `${rows.length} of ${series.length} series, ${data.runs.length} runs, ${data.metrics.length} metrics`),
    table([{title: 'program'}, {title: 'target'}, {title: 'chips', number: true}, {title: 'verdict'}, {title: 'cycles', number: true},
           {title: 'last change', number: true}, {title: 'history'}, {title: 'runs', number: true}, {title: 'commit'}, {title: 'time'}], rows)];
}

function find(name, target, chips) { return series.find((s) => s.name === name && s.target === target && String(s.chips) === chips); }
const missing = (what) => [element('h1', {}, 'Not here'), element('p', {}, what)];

function program(s) {
  const wanted = $('search').value.toLowerCase();
  const base = `/metric/${part(s.name)}/${part(s.target)}/${s.chips}/`;
  const all = metricsOf(s);
  const causes = all.filter((m) => data.metrics[m].name.startsWith('causes.'));
  const labels = s.runs.map((r) => short(r.commit));
  const out = [element('h1', {}, s.title)];
  if (s.runs.length > 1) {
    const [a, b] = s.runs.slice(-2);
    out.push(element('p', {}, link(`/diff/${a.id}/${b.id}`, 'what changed in the last run')));
  }
  const moving = causes.filter((m) => valuesOf(s, m).some((v) => v));
  if (moving.length) {
    out.push(element('h2', {}, 'Cycles by cause'));
    out.push(chart({xAxis: {type: 'category', data: labels}, yAxis: {type: 'value', name: 'cycles'},
      series: moving.map((m) => ({name: data.metrics[m].name.slice(7), stack: 'all', data: valuesOf(s, m),
        ...(s.runs.length < 20 ? {type: 'bar', barMaxWidth: 60} : {type: 'line', areaStyle: {}, showSymbol: false})}))},
      [{title: 'commit'}, {title: 'time'}, ...moving.map((m) => ({title: data.metrics[m].name.slice(7), number: true}))],
      s.runs.map((r, i) => [short(r.commit), day(r.time), ...moving.map((m) => format(valuesOf(s, m)[i]))]).reverse(), 'causes'));
  }
  out.push(element('h2', {}, 'Metrics'));
  const rows = all.filter((m) => !wanted || data.metrics[m].name.toLowerCase().includes(wanted)).map((m) => {
    const values = valuesOf(s, m), metric = data.metrics[m];
    const before = values.length > 1 ? values[values.length - 2] : null;
    const moved = change(last(values), before);
    return [link(base + part(metric.name), metric.name), metric.timed ? 'timed' : 'exact', format(last(values), metric.unit), metric.unit,
      element('span', {class: worse(metric, last(values), before) ? 'bad' : 'dim'}, moved === '0.00 %' ? '' : moved), sparkline(values, false)];
  });
  out.push(table([{title: 'metric'}, {title: 'kind'}, {title: 'value', number: true}, {title: 'unit'}, {title: 'last change', number: true}, {title: 'history'}], rows));
  return out;
}

function metricPage(s, name) {
  const m = metricIndex.get(name);
  const values = m === undefined ? null : valuesOf(s, m);
  if (!values) return missing(`${s.title} has no metric '${name}'.`);
  const metric = data.metrics[m];
  const accepted = acceptancesOf(s, name);
  const limit = (data.limits[s.index] || {})[m];
  const marks = accepted.filter((a) => a.metric !== '*retired').map((a) => {
    const at = s.runs.findIndex((r) => r.index === a.run);
    return {name: a.reason, coord: [at, values[at]], value: 'accepted'};
  }).filter((p) => p.coord[1] !== null);
  const lines = limit ? [{yAxis: limit[0], name: 'median'}, {yAxis: limit[1], name: 'limit'}] : [];
  return [element('h1', {}, `${name}`),
    element('p', {}, link(`/program/${part(s.name)}/${part(s.target)}/${s.chips}`, s.title), ` · ${metric.timed ? 'timed' : 'exact'}${metric.unit ? ', ' + metric.unit : ''}`),
    limit ? element('p', {class: 'dim'}, `limit of the next run on ${limit[2]}: ${format(limit[1], metric.unit)}, from a median of ${format(limit[0], metric.unit)}`) : null,
    chart({xAxis: {type: 'category', data: s.runs.map((r) => short(r.commit))}, yAxis: {type: 'value', scale: true, name: metric.unit}, dataZoom: [{type: 'inside'}],
      series: [{name, type: 'line', step: metric.timed ? false : 'end', data: values, symbolSize: 5, showSymbol: values.length < 300,
                markPoint: {symbol: 'pin', symbolSize: 34, label: {show: false}, data: marks},
                markLine: {symbol: 'none', lineStyle: {type: 'dashed'}, label: {formatter: '{b}'}, data: lines}}]},
      [{title: 'run', number: true}, {title: 'commit'}, {title: 'time'}, {title: 'host'}, {title: 'value', number: true}, {title: 'change', number: true}, {title: 'verdict'}, {title: 'accepted'}],
      s.runs.map((r, i) => [link(i ? `/diff/${s.runs[i - 1].id}/${r.id}` : `/program/${part(s.name)}/${part(s.target)}/${s.chips}`, String(r.id)), short(r.commit), day(r.time), r.host, format(values[i], metric.unit),
        i ? element('span', {class: worse(metric, values[i], values[i - 1]) ? 'bad' : 'dim'}, change(values[i], values[i - 1]).replace(/^0.00 %$/, '')) : '', verdictOf(r),
        accepted.filter((a) => a.run === r.index).map((a) => a.reason).join('; ')]).reverse(), 'metric')];
}

function diff(idA, idB) {
  const a = data.runs.find((r) => String(r.id) === idA), b = data.runs.find((r) => String(r.id) === idB);
  if (!a || !b) return missing('There is no such run.');
  const value = (r, m) => { const s = series[r.series], v = valuesOf(s, m); return v ? v[s.runs.indexOf(r)] : null; };
  const rows = [];
  data.metrics.forEach((metric, m) => {
    const old = value(a, m), now = value(b, m);
    if (old === now || (old === null && now === null)) return;
    rows.push({metric, old, now, size: old ? Math.abs((now - old) / old) : Infinity});
  });
  rows.sort((x, y) => x.metric.timed - y.metric.timed || (x.metric.name === 'cycles.simulated' ? -1 : 0) - (y.metric.name === 'cycles.simulated' ? -1 : 0) || y.size - x.size);
  const before = new Map(data.decisions[a.decisions] || []), after = new Map(data.decisions[b.decisions] || []);
  const decided = [...new Set([...before.keys(), ...after.keys()])].filter((k) => before.get(k) !== after.get(k));
  const causes = data.metrics.map((metric, m) => [metric, m]).filter(([metric]) => metric.name.startsWith('causes.'));
  const moved = causes.filter(([, m]) => value(a, m) || value(b, m));
  const pick = (r, other, first) => element('select', {'aria-label': first ? 'older run' : 'newer run', onchange: (e) => { location.hash = first ? `/diff/${e.target.value}/${other.id}` : `/diff/${other.id}/${e.target.value}`; }},
    ...series[r.series].runs.map((x) => element('option', {value: x.id, selected: x === r}, `run ${x.id}, ${short(x.commit)}, ${day(x.time)}`)));
  return [element('h1', {}, 'What changed'), element('p', {}, series[b.series].title),
    element('div', {class: 'controls'}, pick(a, b, true), '→', pick(b, a, false)),
    a.verdict !== b.verdict ? element('p', {}, 'verdict: ', verdictOf(a), ' → ', verdictOf(b)) : null,
    decided.length ? element('h2', {}, 'Decisions') : null,
    decided.length ? table([{title: 'decision'}, {title: 'before'}, {title: 'after'}], decided.map((k) => [k, before.get(k) ?? null, after.get(k) ?? null])) : null,
    element('h2', {}, 'Causes'),
    chart({xAxis: {type: 'category', data: [`run ${a.id}`, `run ${b.id}`]}, yAxis: {type: 'value', name: 'cycles'},
      series: moved.map(([metric, m]) => ({name: metric.name.slice(7), type: 'bar', stack: 'all', data: [value(a, m), value(b, m)]}))},
      [{title: 'cause'}, {title: 'before', number: true}, {title: 'after', number: true}, {title: 'difference', number: true}],
      moved.map(([metric, m]) => [metric.name.slice(7), format(value(a, m)), format(value(b, m)), format((value(b, m) || 0) - (value(a, m) || 0))]), 'diff'),
    element('h2', {}, `Metrics that moved: ${rows.length}`),
    table([{title: 'metric'}, {title: 'before', number: true}, {title: 'after', number: true}, {title: 'change', number: true}],
      rows.map((r) => [r.metric.name, format(r.old, r.metric.unit), format(r.now, r.metric.unit),
        element('span', {class: worse(r.metric, r.now, r.old) ? 'bad' : 'dim'}, change(r.now, r.old))]))];
}

// What scripts/accuracy found: errors in percent, and the bounds that they are held to.
function measured() {
  if (!data.accuracy.length) return [];
  const rows = data.accuracy.map((r) => ({...r, error: r.value === null ? null : (r.value / r.reference - 1) * 100, percent: r.bound * 100}));
  const missed = rows.filter((r) => r.error === null || Math.abs(r.error) > r.percent);
  const bounds = (side) => ({name: side > 0 ? 'upper bound' : 'lower bound', type: 'line', step: 'middle', showSymbol: false, lineStyle: {type: 'dashed'}, data: rows.map((r) => side * r.percent)});
  return [element('h1', {}, 'Against what others measured'),
    element('p', {class: missed.length ? 'bad' : 'good'}, `${rows.length - missed.length} of ${rows.length} within their bounds`),
    chart({xAxis: {type: 'category', data: rows.map((r) => r.what), axisLabel: {show: false}, name: 'measurement', nameGap: 12}, yAxis: {type: 'value', name: 'error, %'},
      series: [{name: 'error', type: 'bar', barMaxWidth: 24, data: rows.map((r) => r.error)}, bounds(1), bounds(-1)]},
      [{title: 'what'}, {title: 'measured', number: true}, {title: 'rdusim', number: true}, {title: 'error', number: true}, {title: 'bound', number: true}, {title: 'verdict'}],
      rows.map((r) => [r.what, format(r.reference), format(r.value), r.error === null ? '–' : `${r.error > 0 ? '+' : ''}${r.error.toFixed(2)} %`, `${format(r.percent)} %`,
        element('span', {class: missed.includes(r) ? 'bad' : 'good'}, missed.includes(r) ? 'missed' : 'within')]), 'measured')];
}

function accuracy() {
  const simulated = metricIndex.get('cycles.simulated'), predicted = metricIndex.get('cycles.predicted');
  const rows = series.filter((s) => s.runs.length).map((s) => {
    const a = last(valuesOf(s, simulated)), b = predicted === undefined ? null : last(valuesOf(s, predicted));
    return [s, a, b];
  }).filter(([, a, b]) => a !== null && b);
  return [...measured(), element('h1', {}, 'The cost model against the simulator'),
    chart({xAxis: {type: 'log', name: 'predicted', scale: true}, yAxis: {type: 'log', name: 'simulated', scale: true}, tooltip: {trigger: 'item', renderMode: 'richText', formatter: (p) => p.data[2]},
      series: [{type: 'scatter', data: rows.map(([s, a, b]) => [b, a, s.title])}]},
      [{title: 'program'}, {title: 'simulated', number: true}, {title: 'predicted', number: true}, {title: 'difference', number: true}],
      rows.map(([s, a, b]) => [s.title, format(a), format(b), change(a, b)]), 'accuracy')];
}

// Cycles over chips: of what the history has, and of every sweep that varied chips, the best of each number.
function scaling() {
  const cycles = metricIndex.get('cycles.simulated');
  const groups = new Map();
  const put = (key, chips, v) => {
    if (!groups.has(key)) groups.set(key, new Map());
    const at = groups.get(key);
    at.set(chips, Math.min(v, at.get(chips) ?? Infinity));
  };
  for (const s of series) {
    const v = s.runs.length ? last(valuesOf(s, cycles)) : null;
    if (v !== null) put(`${s.name.replace(/([_-])(tp)?\d+$/, '')} on ${s.target}`, s.chips, v);
  }
  for (const s of data.sweeps) {
    for (const [chips, v] of passed(s, 'chips', 'cycles')) put(`sweep ${s.name}`, chips, v);
  }
  const lines = [...groups].map(([name, points]) => [name, [...points].sort((a, b) => a[0] - b[0])]).filter(([, p]) => p.length > 1);
  if (!lines.length) return [element('h1', {}, 'Scaling over chips'), element('p', {}, 'No program was run on more than one number of chips.')];
  return [element('h1', {}, 'Scaling over chips'),
    chart({xAxis: {type: 'log', logBase: 2, name: 'chips'}, yAxis: {type: 'log', name: 'cycles', scale: true}, tooltip: {trigger: 'item', renderMode: 'richText'},
      series: lines.map(([name, points]) => ({name, type: 'line', data: points}))},
      [{title: 'program'}, {title: 'chips', number: true}, {title: 'cycles', number: true}, {title: 'speed-up', number: true}, {title: 'efficiency', number: true}],
      lines.flatMap(([name, points]) => points.map(([c, v]) => [name, String(c), format(v), (points[0][1] / v).toFixed(2),
        (points[0][1] * points[0][0] / (v * c) * 100).toFixed(1) + ' %'])), 'scaling')];
}

function front(points) {  // less is better in both
  const kept = [];
  for (const p of [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1])) if (!kept.length || p[1] < kept[kept.length - 1][1]) kept.push(p);
  return kept;
}

// [x, y, row] of a sweep's points that passed and have both as numbers.
function passed(s, x, y) {
  const xi = s.columns.indexOf(x), yi = s.columns.indexOf(y), vi = s.columns.indexOf('verdict');
  return s.rows.filter((r) => (vi < 0 || r[vi] === 'pass') && typeof r[xi] === 'number' && typeof r[yi] === 'number').map((r) => [r[xi], r[yi], r]);
}

// The columns that the plan varied as numbers: what stands between the point's number and its verdict.
function axesOf(s) {
  const until = s.columns.indexOf('verdict');
  return s.columns.filter((c, i) => i < until && c !== 'point' && new Set(s.rows.map((r) => r[i]).filter((v) => typeof v === 'number')).size > 1);
}

function sweepChart(s, x, y, name) {
  const points = passed(s, x, y), best = front(points);
  const label = (r) => s.columns.map((c, i) => `${c}: ${r[i]}`).join('\n');
  const spread = points.length && Math.min(...points.map((p) => p[0])) > 0 && Math.max(...points.map((p) => p[0])) >= 8 * Math.min(...points.map((p) => p[0]));
  return [element('p', {class: 'dim'}, `${y} against ${x}: ${points.length} points that passed, ${best.length} on the front`),
    chart({xAxis: {type: spread ? 'log' : 'value', ...(spread ? {logBase: 2} : {}), name: x, scale: true}, yAxis: {type: 'value', name: y, scale: true},
      tooltip: {trigger: 'item', renderMode: 'richText', formatter: (p) => p.data[2] ? label(p.data[2]) : ''},
      series: [{name: 'points', type: 'scatter', symbolSize: 7, data: points}, {name: 'Pareto front', type: 'line', step: 'end', data: best}]},
      [{title: x, number: true}, {title: y, number: true}, {title: 'point', number: true}], best.map(([a, b, r]) => [format(a), format(b), format(r[s.columns.indexOf('point')])]), name)];
}

function sweep(index, x, y) {
  const s = data.sweeps[Number(index)];
  if (!s) return missing('There is no such sweep.');
  const numeric = s.columns.filter((c, i) => s.rows.some((r) => typeof r[i] === 'number'));
  const axes = axesOf(s);
  const yc = numeric.includes(y) ? y : numeric.includes('cycles') ? 'cycles' : 'point';
  const shown = numeric.includes(x) ? [x] : axes.length ? axes : [numeric.find((c) => c !== 'point') || 'point'];
  const go = (to) => (e) => { location.hash = to(part(e.target.value)); };
  const choose = (label, value, options, to) => element('select', {'aria-label': label, onchange: go(to)}, ...options.map(([v, text]) => element('option', {value: v, selected: v === value}, text)));
  return [element('h1', {}, `Sweep ${s.name}`),
    element('div', {class: 'controls'}, 'across', choose('across', numeric.includes(x) ? x : '', [['', 'each axis'], ...numeric.map((c) => [c, c])], (v) => v ? `/sweep/${index}/${v}/${part(yc)}` : `/sweep/${index}`),
      'up', choose('up', yc, numeric.map((c) => [c, c]), (v) => `/sweep/${index}/${part(numeric.includes(x) ? x : '')}/${v}`), element('span', {class: 'dim'}, `${s.rows.length} points`)),
    ...shown.flatMap((c) => sweepChart(s, c, yc, `sweep-${c}`)),
    element('h2', {}, 'All points'),
    table(s.columns.map((c, i) => ({title: c, number: s.rows.some((r) => typeof r[i] === 'number')})),
      s.rows.map((r) => r.map((v) => v === null ? '–' : typeof v === 'number' ? format(v) : String(v))))];
}

// ---- the page
function navigation(view) {
  const items = [['/', 'Overview'], ['/scaling', 'Scaling'], ['/accuracy', 'Accuracy'], ...data.sweeps.map((s, i) => [`/sweep/${i}`, `Sweep ${s.name}`])];
  $('nav').replaceChildren(...items.map(([to, text]) => {
    const a = link(to, text);
    if (to === view || (to !== '/' && view.startsWith(to))) a.setAttribute('aria-current', 'page');
    return a;
  }));
}
function show() {
  const began = performance.now();
  page.clear();
  const view = location.hash.slice(1) || '/';
  const [, kind = '', ...words] = view.split('/').map((w) => { try { return decodeURIComponent(w); } catch { return w; } });
  let content;
  if (kind === '') content = overview();
  else if (kind === 'program' || kind === 'metric') {
    const s = find(words[0], words[1], words[2]);
    content = !s ? missing('There is no such program.') : kind === 'program' ? program(s) : metricPage(s, words[3]);
  } else if (kind === 'diff') content = diff(words[0], words[1]);
  else if (kind === 'accuracy') content = accuracy();
  else if (kind === 'scaling') content = scaling();
  else if (kind === 'sweep') content = sweep(words[0], words[1], words[2]);
  else content = missing('There is no such page.');
  navigation(view);
  $('main').replaceChildren(...content.filter((c) => c !== null));
  document.body.dataset.ready = view;
  document.body.dataset.milliseconds = (performance.now() - began).toFixed(1);
}
$('search').addEventListener('input', show);
addEventListener('hashchange', show);
page.start(show);
})();
