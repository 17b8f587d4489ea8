// The view of a run: reads the data block of its own page (view.h says what is in it) and draws it. Nothing is fetched.
'use strict';
(() => {
const {data, $, element, format, table, chart} = page;
const report = data.report;
const causes = ['input_starvation', 'back_pressure', 'memory', 'network_contention', 'link', 'bank_conflict', 'engine'];
const causeText = causes.map((c) => c.replace('_', ' '));
// Told apart with any colour vision: cividis for amounts, Okabe and Ito's palette for kinds; every kind has a letter too.
const amounts = ['#00224e', '#1c3a6e', '#434e6c', '#61656f', '#7d7c78', '#9b9377', '#bdae6c', '#fee838'];
const kinds = ['#0072b2', '#e69f00', '#d55e00', '#cc79a7', '#56b4e9', '#009e73', '#f0e442', '#8c8c8c'];  // busy, then the causes
const letters = ['', 'I', 'R', 'M', 'N', 'L', 'B', 'E'];
const share = (v) => (v * 100).toFixed(1) + ' %';
const folded = (name) => name.replace(/_c\d+(?=_|$)/g, '');
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

// ---- the machine: what is drawn of it. A report has no time, and of a stage one site.
function timeless() {
  const sites = [], stages = [], lives = [], links = [];
  for (const s of (report && report.stages) || []) {
    const at = /^chip(\d+)\.site\((\d+),(\d+)\)/.exec(s.site || '');
    if (!at) continue;
    stages.push({name: s.name, kind: '', unit: '', group: sites.length, lives: [lives.length]});
    sites.push([Number(at[1]), Number(at[2]), Number(at[3])]);
    lives.push(['', s.firings, s.busy, ...causes.map((c) => (s.stall || {})[c] || 0)]);
  }
  for (const l of (report && report.links) || []) {
    const ends = /chip(\d+)->chip(\d+)/.exec(l.name);
    if (ends) links.push([Number(ends[1]), Number(ends[2]), l.name, l.bytes, l.busy_cycles, '']);
  }
  const memories = ((report && report.memories) || []).map((m) => [Number((/^chip(\d+)/.exec(m.name) || [0, 0])[1]), m.name.replace(/^chip\d+\./, ''),
    m.read_bytes + m.write_bytes, Math.round(m.utilisation * data.cycles), '']);
  return {width: data.cycles, bins: 0, symbols: 'A', sites, stages, lives, links, memories};
}
const time = data.time || timeless();
const symbolOf = new Map([...time.symbols].map((c, i) => [c, i]));
function unfold(row) {
  const cells = new Uint8Array(time.bins);
  let at = 0;
  for (const [, symbol, times] of row.matchAll(/(\D)(\d*)/g)) {
    const n = times === '' ? 1 : Number(times);
    cells.fill(symbolOf.get(symbol), at, at + n);
    at += n;
  }
  return cells;
}
const lives = time.lives.map(([row, firings, busy, ...stall]) => ({cells: unfold(row), firings, busy, stall, stalled: stall.reduce((a, b) => a + b, 0)}));
const loads = (list) => list.map((l) => ({cells: unfold(l[l.length - 1]), busy: l[l.length - 2], bytes: l[l.length - 3]}));
const links = loads(time.links).map((l, i) => ({...l, from: time.links[i][0], to: time.links[i][1], name: time.links[i][2]}));
const memories = loads(time.memories).map((m, i) => ({...m, chip: time.memories[i][0], name: time.memories[i][1]}));
// The sites in use, chip by chip; each with the instances that live there.
const {chips: chipCount, width: meshWidth, height: meshHeight} = data.machine;
const chips = Array.from({length: chipCount}, () => ({sites: [], at: new Map()}));
time.stages.forEach((stage, s) => {
  const [chip, ...places] = time.sites[stage.group];
  stage.lives.forEach((life, i) => {
    const x = places[2 * i], y = places[2 * i + 1], key = y * meshWidth + x;
    let site = chips[chip].at.get(key);
    if (!site) {
      site = {chip, x, y, units: []};
      chips[chip].at.set(key, site);
      chips[chip].sites.push(site);
    }
    site.units.push({stage, life: lives[life]});
  });
});
chips.forEach((c) => c.sites.sort((a, b) => a.y - b.y || a.x - b.x));

// ---- what is asked for: kept in the address, so that it can be passed on
const asked = {colour: 'busy', stage: '', links: links.length > 60 ? 'chip' : 'all', time: 0, chip: 0, site: null};
function readAddress() {
  for (const pair of location.hash.slice(1).split('&')) {
    const [key, value = ''] = pair.split('=').map((w) => { try { return decodeURIComponent(w); } catch { return ''; } });
    if (key === 'site') {
      const at = /^(\d+),(\d+)$/.exec(value);
      if (at) asked.site = [Number(at[1]), Number(at[2])];
    } else if (key === 'chip' || key === 'time') asked[key] = Math.min(Number(value) || 0, key === 'chip' ? chipCount - 1 : time.bins);
    else if (key === 'colour' || key === 'stage' || key === 'links') asked[key] = value;
  }
}
function writeAddress() {
  const words = [`chip=${asked.chip}`, `time=${asked.time}`, `colour=${asked.colour}`, `links=${asked.links}`];
  if (asked.site) words.push(`site=${asked.site}`);
  if (asked.stage) words.push(`stage=${encodeURIComponent(asked.stage)}`);
  history.replaceState(null, '', '#' + words.join('&'));
}
const siteAsked = () => asked.site ? chips[asked.chip].at.get(asked.site[1] * meshWidth + asked.site[0]) : undefined;

// ---- figures of a site, link or memory: over the whole run (time 0), or in bin time - 1
const cycles = Math.max(1, data.cycles);
const when = () => asked.time === 0 ? 'whole run' : `cycles ${format((asked.time - 1) * time.width)} to ${format(Math.min(cycles, asked.time * time.width) - 1)}`;
// The busiest of its stages; of these, the longest that one waited; and what they waited for most.
function figures(site) {
  let busy = 0, stall = 0, used = false;
  const waited = [0, 0, 0, 0, 0, 0, 0];
  for (const {stage, life} of site.units) {
    if (asked.stage && folded(stage.name) !== asked.stage) continue;
    used = true;
    if (asked.time === 0) {
      busy = Math.max(busy, life.busy / cycles);
      stall = Math.max(stall, life.stalled / cycles);
      life.stall.forEach((c, i) => { waited[i] += c; });
    } else {
      const cell = life.cells[asked.time - 1], level = cell >> 3, rest = cell & 7;
      busy = Math.max(busy, level / 7);
      if (rest) {
        stall = Math.max(stall, (7 - level) / 7);
        waited[rest - 1] += 7 - level;
      }
    }
  }
  const most = Math.max(...waited);
  return {used, busy: Math.min(1, busy), stall: Math.min(1, stall), cause: most === 0 ? -1 : waited.indexOf(most)};
}
const loadOf = (l) => asked.time === 0 ? Math.min(1, l.busy / cycles) : l.cells[asked.time - 1] / 7;
const amount = (v) => amounts[Math.max(0, Math.min(7, Math.floor(v * 8)))];
// Amounts are coloured up to the greatest there is, so that differences are seen where all is small.
let greatest = 1;
function work() {
  greatest = 0;
  for (const chip of chips) {
    for (const s of chip.sites) {
      s.figures = figures(s);
      greatest = Math.max(greatest, asked.colour === 'busy' ? s.figures.busy : s.figures.stall);
    }
  }
  if (greatest === 0) greatest = 1;
}
function colourOf(f) {
  if (!f.used) return null;
  if (asked.colour === 'busy') return amount(f.busy / greatest);
  if (asked.colour === 'stall') return amount(f.stall / greatest);
  return f.cause < 0 ? kinds[0] : kinds[f.cause + 1];
}
function tell(f) {
  return `busy ${share(f.busy)}, waiting ${share(f.stall)}` + (f.cause < 0 ? '' : `, mostly for ${causeText[f.cause]}`);
}

// ---- drawings
function canvas(id, label, width, height) {
  const c = element('canvas', {id, tabindex: 0, role: 'application', 'aria-label': label});
  const scale = Math.max(1, devicePixelRatio || 1);
  c.width = width * scale; c.height = height * scale;
  c.style.width = width + 'px';
  const g = c.getContext('2d');
  g.scale(scale, scale);
  // Where the page is narrow the canvas is shown smaller than it is drawn.
  c.at = (e) => { const r = c.getBoundingClientRect(); return [(e.clientX - r.left) * width / r.width, (e.clientY - r.top) * height / r.height]; };
  return [c, g];
}
let plan;  // of the overview: where the chips lie
function drawMachine() {
  const {g, columns, cell, gap, top} = plan;
  const w = meshWidth * cell, h = meshHeight * cell;
  plan.place = (n) => [n % columns * (w + gap) + gap, Math.floor(n / columns) * (h + gap) + top];
  g.clearRect(0, 0, plan.width, plan.height);
  chips.forEach((chip, n) => {
    const [x, y] = plan.place(n);
    g.fillStyle = css('--panel');
    g.fillRect(x, y, w, h);
    for (const s of chip.sites) {
      const colour = colourOf(s.figures);
      if (!colour) continue;
      g.fillStyle = colour;
      g.fillRect(x + s.x * cell, y + s.y * cell, Math.max(1, cell - (cell > 3 ? 0.5 : 0)), Math.max(1, cell - (cell > 3 ? 0.5 : 0)));
    }
    g.lineWidth = n === asked.chip ? 2.5 : 1;
    g.strokeStyle = css(n === asked.chip ? '--accent' : '--line');
    g.strokeRect(x - 1, y - 1, w + 2, h + 2);
    if (w > 40) {
      g.fillStyle = css('--dim');
      g.font = '10px system-ui, sans-serif';
      g.fillText(String(n), x, y - 3);
    }
  });
  for (const l of links) {
    if (asked.links === 'none' || (asked.links === 'chip' && l.from !== asked.chip && l.to !== asked.chip)) continue;
    const load = loadOf(l);
    if (load === 0) continue;
    const [ax, ay] = plan.place(l.from), [bx, by] = plan.place(l.to);
    const dx = bx - ax, dy = by - ay, length = Math.hypot(dx, dy) || 1;
    // The two directions bend apart.
    const mx = (ax + bx + w) / 2 - dy / length * (8 + length * 0.06), my = (ay + by + h) / 2 + dx / length * (8 + length * 0.06);
    g.globalAlpha = 0.35 + 0.6 * load;
    g.strokeStyle = amount(load);
    g.lineWidth = 0.6 + 3 * load;
    g.beginPath();
    g.moveTo(ax + w / 2, ay + h / 2);
    g.quadraticCurveTo(mx, my, bx + w / 2, by + h / 2);
    g.stroke();
  }
  g.globalAlpha = 1;
}
let detail;
function drawChip() {
  const {g, cell} = detail;
  g.clearRect(0, 0, detail.width, detail.height);
  g.fillStyle = css('--panel');
  g.fillRect(0, 0, meshWidth * cell, meshHeight * cell);
  g.textAlign = 'center';
  g.font = `${Math.max(7, cell - 5)}px system-ui, sans-serif`;
  for (const s of chips[asked.chip].sites) {
    const f = s.figures, colour = colourOf(f);
    if (!colour) continue;
    g.fillStyle = colour;
    g.fillRect(s.x * cell, s.y * cell, cell - 1, cell - 1);
    if (asked.colour === 'cause' && f.cause >= 0 && cell >= 11) {
      g.fillStyle = '#000000';
      g.fillText(letters[f.cause + 1], s.x * cell + cell / 2 - 0.5, s.y * cell + cell - 4);
    }
  }
  if (!asked.site) return;
  g.strokeStyle = css('--bad');
  g.lineWidth = 2.5;
  g.strokeRect(asked.site[0] * cell - 1, asked.site[1] * cell - 1, cell + 1, cell + 1);
}
function legend() {
  const swatch = (colour, text) => { const i = element('i'); i.style.background = colour; return element('span', {}, i, text); };
  if (asked.colour !== 'cause') return [element('span', {}, '0 %'), ...amounts.map((c) => swatch(c, '')), element('span', {}, share(greatest))];
  return [swatch(kinds[0], 'waited for nothing'), ...causeText.map((c, i) => swatch(kinds[i + 1], `${letters[i + 1]} ${c}`))];
}

// ---- the panels beside the drawings
function chipPanel() {
  const chip = chips[asked.chip];
  const own = links.filter((l) => l.from === asked.chip || l.to === asked.chip).sort((a, b) => loadOf(b) - loadOf(a));
  const memory = memories.filter((m) => m.chip === asked.chip);
  const rows = [...memory.map((m) => [m.name, format(m.bytes), share(loadOf(m))]), ...own.map((l) => [l.name, format(l.bytes), share(loadOf(l))])];
  return [element('h2', {}, `Chip ${asked.chip}`), element('p', {class: 'dim'}, `${chip.sites.length} of ${meshWidth * meshHeight} sites in use`),
    rows.length ? table([{title: 'link or memory'}, {title: 'bytes', number: true}, {title: 'taken', number: true}], rows, 24) : null];
}
function drawSite() {
  const box = $('site'), site = siteAsked();
  if (!site) {
    box.replaceChildren(element('p', {class: 'dim'}, asked.site ? `Nothing runs at chip${asked.chip}.site(${asked.site}).` : 'Choose a site: click one, or use the arrow keys on the chip.'));
    return;
  }
  const rows = site.units.map(({stage, life}) => [stage.name, stage.unit || '–', format(life.firings), format(life.busy), share(life.busy / cycles),
    life.stall.map((c, i) => c ? `${causeText[i]} ${format(c)}` : '').filter((t) => t).join(', ') || '–']);
  const parts = [element('h2', {id: 'site-name'}, `chip${site.chip}.site(${site.x},${site.y})`)];
  if (time.bins) {
    const many = site.units.length > 12, height = many ? 12 : 26, label = 14, width = 900;
    const [c, g] = canvas('life', 'what each stage of the site did over time; arrow keys move the time', width, site.units.length * (height + label));
    site.units.forEach(({stage, life}, n) => {
      const top = n * (height + label) + label, step = width / time.bins;
      g.fillStyle = css('--dim');
      g.font = '11px system-ui, sans-serif';
      g.fillText(`${stage.name}  ${stage.unit}`, 0, top - 3);
      g.fillStyle = css('--panel');
      g.fillRect(0, top, width, height);
      life.cells.forEach((cell, b) => {
        const level = cell >> 3, rest = cell & 7, tall = height * level / 7;
        if (rest) { g.fillStyle = kinds[rest]; g.globalAlpha = 0.75; g.fillRect(b * step, top, step, height - tall); g.globalAlpha = 1; }
        if (level) { g.fillStyle = kinds[0]; g.fillRect(b * step, top + height - tall, step, tall); }
      });
    });
    if (asked.time) { g.strokeStyle = css('--bad'); g.lineWidth = 2; g.strokeRect((asked.time - 1) * width / time.bins, 1, width / time.bins, site.units.length * (height + label) - 2); }
    c.addEventListener('click', (e) => to({time: 1 + Math.min(time.bins - 1, Math.floor(c.at(e)[0] / width * time.bins))}));
    c.addEventListener('keydown', (e) => {
      const by = {ArrowLeft: -1, ArrowRight: 1}[e.key];
      if (!by) return;
      e.preventDefault();
      to({time: Math.max(0, Math.min(time.bins, asked.time + by))});
      $('life').focus();
    });
    const key = element('div', {class: 'legend'});
    const swatch = (colour, text) => { const i = element('i'); i.style.background = colour; return element('span', {}, i, text); };
    key.append(swatch(kinds[0], 'busy'), ...causeText.map((t, i) => swatch(kinds[i + 1], `waits: ${t}`)));
    parts.push(c, key);
  }
  parts.push(table([{title: 'stage'}, {title: 'unit'}, {title: 'firings', number: true}, {title: 'busy', number: true}, {title: 'of the run', number: true}, {title: 'waited, in cycles'}], rows));
  box.replaceChildren(...parts);
}

// ---- what changes when something is chosen
function to(change) {
  Object.assign(asked, change);
  update();
}
function update() {
  writeAddress();
  work();
  $('time').value = asked.time;
  $('when').textContent = when();
  $('legend').replaceChildren(...legend());
  drawMachine();
  drawChip();
  $('chip-panel').replaceChildren(...chipPanel().filter((c) => c !== null));
  drawSite();
  const site = siteAsked(), chip = chips[asked.chip].sites;
  const all = chip.map((s) => s.figures).filter((f) => f.used);
  const mean = (key) => all.length ? all.reduce((n, f) => n + f[key], 0) / all.length : 0;
  $('said').textContent = (site ? `chip${site.chip}.site(${site.x},${site.y}): ${tell(site.figures)}` :
    `chip ${asked.chip}: busy ${share(mean('busy'))}, waiting ${share(mean('stall'))}, the mean of ${all.length} sites`) + ` (${when()})`;
}
function moveSite(dx, dy) {
  const sites = chips[asked.chip].sites;
  if (!sites.length) return;
  if (!asked.site) return to({site: [sites[0].x, sites[0].y]});
  const [x, y] = asked.site;
  // The nearest in that direction, first of those in line.
  const far = (s) => { const along = (s.x - x) * dx + (s.y - y) * dy, across = Math.abs((s.x - x) * dy) + Math.abs((s.y - y) * dx); return along > 0 ? along + 3 * across : Infinity; };
  const next = sites.reduce((a, b) => far(b) < far(a) ? b : a);
  if (far(next) < Infinity) to({site: [next.x, next.y]});
}
const arrows = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};

// ---- the page's parts
function machine() {
  const room = Math.max(280, Math.min(780, document.documentElement.clientWidth - 60));
  const columns = Math.ceil(Math.sqrt(chipCount)), rows = Math.ceil(chipCount / columns), gap = chipCount > 64 ? 6 : 18;
  const cell = Math.max(0.25, Math.min(14, ((room - gap) / columns - gap) / meshWidth, 700 / rows / meshHeight));
  const width = columns * (meshWidth * cell + gap) + gap, top = 16, height = rows * (meshHeight * cell + gap) + top;
  const [c, g] = canvas('machine', `${chipCount} chips; arrow keys choose one, Enter goes to its sites`, Math.ceil(width), Math.ceil(height));
  plan = {g, columns, cell, gap, top, width, height};
  c.addEventListener('click', (e) => {
    const [x, y] = c.at(e);
    const column = Math.floor((x - gap / 2) / (meshWidth * cell + gap)), row = Math.floor((y - top + gap / 2) / (meshHeight * cell + gap));
    const n = row * columns + column;
    if (column >= 0 && column < columns && n >= 0 && n < chipCount) to({chip: n, site: null});
  });
  c.addEventListener('keydown', (e) => {
    if (e.key === 'Enter') { moveSite(1, 0); $('chip').focus(); return; }
    const by = arrows[e.key];
    if (!by) return;
    e.preventDefault();
    const n = asked.chip + by[0] + by[1] * columns;
    if (n >= 0 && n < chipCount) to({chip: n, site: null});
  });
  const size = Math.max(5, Math.min(16, Math.floor(Math.min(room / meshWidth, 460 / meshHeight))));
  const [d, h] = canvas('chip', 'the sites of the chip; arrow keys choose one', meshWidth * size + 2, meshHeight * size + 2);
  detail = {g: h, cell: size, width: meshWidth * size + 2, height: meshHeight * size + 2};
  d.addEventListener('click', (e) => { const [x, y] = d.at(e); to({site: [Math.min(meshWidth - 1, Math.floor(x / size)), Math.min(meshHeight - 1, Math.floor(y / size))]}); });
  d.addEventListener('keydown', (e) => {
    const by = arrows[e.key];
    if (!by) return;
    e.preventDefault();
    moveSite(...by);
  });
  const choose = (id, label, options) => element('label', {}, label + ' ', element('select', {id, onchange: (e) => to({[id]: e.target.value})},
    ...options.map(([value, text]) => element('option', {value, selected: asked[id] === value}, text))));
  const names = [...new Set(time.stages.map((s) => folded(s.name)))];
  return [element('h2', {}, 'The machine'),
    element('div', {class: 'controls'},
      choose('colour', 'colour by', [['busy', 'how busy'], ['stall', 'how long it waited'], ['cause', 'what it waited for']]),
      choose('stage', 'of', [['', 'all stages'], ...names.map((n) => [n, n])]),
      choose('links', 'links', [['all', 'all'], ['chip', 'of the chip'], ['none', 'none']])),
    element('div', {class: 'controls'}, element('label', {for: 'time'}, 'time'),
      element('input', {id: 'time', type: 'range', min: 0, max: time.bins, step: 1, value: 0, disabled: time.bins === 0, oninput: (e) => to({time: Number(e.target.value)})}),
      element('output', {id: 'when', for: 'time'})),
    element('p', {id: 'said', 'aria-live': 'polite'}),
    element('div', {id: 'legend', class: 'legend'}),
    element('div', {class: 'panes'}, element('div', {class: 'pane'}, c), element('div', {class: 'pane'}, d), element('div', {class: 'pane', id: 'chip-panel'})),
    element('section', {id: 'site'})];
}

function causeTable() {
  const split = report && report.cycles && report.cycles.causes;
  if (!split) return [];
  const names = Object.keys(split.simulated), most = Math.max(1, ...names.map((n) => split.simulated[n]));
  const sum = (key) => names.reduce((n, c) => n + split[key][c], 0);
  const rows = names.filter((n) => split.simulated[n] || split.predicted[n]).map((n) => [n.replace('_', ' '), format(split.simulated[n]), share(split.simulated[n] / cycles),
    element('meter', {min: 0, max: most, value: split.simulated[n], 'aria-label': n}), format(split.predicted[n]), format(split.simulated[n] - split.predicted[n])]);
  rows.push(['all', format(sum('simulated')), '', '', format(sum('predicted')), format(sum('simulated') - sum('predicted'))]);
  return [element('h2', {}, 'Cycles by cause'), element('div', {id: 'causes'}, table([{title: 'cause'}, {title: 'simulated', number: true}, {title: 'share', number: true}, {title: ''},
    {title: 'predicted', number: true}, {title: 'difference', number: true}], rows))];
}

function roofline() {
  const peaks = report && report.roofline;
  if (!peaks) return [];
  const points = report.stages.filter((s) => s.macs && s.moved_bytes && s.cycles).map((s) => ({s, x: s.macs / s.moved_bytes, y: s.macs / s.cycles}));
  if (!points.length) return [];
  const xs = points.map((p) => p.x), least = Math.min(...xs) / 2;
  const roofs = [['HBM', peaks.hbm_bytes_per_cycle], ['chip links', peaks.link_bytes_per_cycle], ['PMUs', peaks.pmu_bytes_per_cycle]].filter((r) => r[1] > 0);
  const most = Math.max(...xs, ...roofs.map((r) => peaks.macs_per_cycle / r[1])) * 2;
  const groups = new Map();
  for (const p of points) {
    if (!groups.has(folded(p.s.name))) groups.set(folded(p.s.name), []);
    groups.get(folded(p.s.name)).push(p);
  }
  const line = (name, data) => ({name, type: 'line', symbol: 'none', lineStyle: {width: 1.5, type: 'dashed'}, data});
  const shapes = ['circle', 'rect', 'triangle', 'diamond', 'pin', 'arrow', 'roundRect'];
  const series = [line('PCUs', [[least, peaks.macs_per_cycle], [most, peaks.macs_per_cycle]]),
    ...roofs.map(([name, rate]) => line(name, [[least, least * rate], [peaks.macs_per_cycle / rate, peaks.macs_per_cycle]].filter(([x]) => x <= most))),
    ...[...groups].map(([name, list], i) => ({name, type: 'scatter', symbol: shapes[i % shapes.length], symbolSize: 9, data: list.map((p) => [p.x, p.y, p.s.name])}))];
  return [element('h2', {}, 'Roofline'),
    element('p', {class: 'dim'}, 'Each stage by the arithmetic of its operator on its chip: across, over the bytes that the stage moved; up, over the cycles that it took. A load stands under the HBM\u2019s roof, a receive under the links\u2019, a matmul under the PMUs\u2019 and the PCUs\u2019.'),
    chart({xAxis: {type: 'log', name: 'multiply-accumulates a byte', min: least, max: most, axisLabel: {formatter: (v) => Number(v.toPrecision(2))}}, yAxis: {type: 'log', name: 'multiply-accumulates a cycle', nameTextStyle: {align: 'left'}},
      tooltip: {trigger: 'item', renderMode: 'richText', formatter: (p) => p.data[2] ? `${p.data[2]}\n${format(p.data[0])} a byte\n${format(p.data[1])} a cycle` : p.seriesName}, series},
      [{title: 'stage'}, {title: 'multiply-accumulates', number: true}, {title: 'bytes moved', number: true}, {title: 'cycles', number: true}, {title: 'a byte', number: true}, {title: 'a cycle', number: true}, {title: 'of the PCUs\u2019 peak', number: true}],
      points.map((p) => [p.s.name, format(p.s.macs), format(p.s.moved_bytes), format(p.s.cycles), format(p.x), format(p.y), share(p.y / peaks.macs_per_cycle)]), 'roofline')];
}

function criticalPath() {
  const path = data.path;
  if (!path) return [];
  const width = 1200, height = 30;
  const [c, g] = canvas('path', 'the longest pieces of the critical path over time', width, height);
  c.removeAttribute('tabindex');
  c.setAttribute('role', 'img');
  g.fillStyle = css('--panel');
  g.fillRect(0, 0, width, height);
  const kind = (what) => ({compute: 0, load: 3, store: 3, landing: 5, sending: 5, crossing: 5, signal: 5, waiting_link: 5, waiting_input: 1, waiting_room: 2, waiting_memory: 3, waiting_network: 4, waiting_bank: 6, waiting_credit: 2}[what] ?? 7);
  for (const s of path.longest) {
    g.fillStyle = kinds[kind(s.what)];
    g.fillRect(s.from / cycles * width, 0, Math.max(0.5, (s.to - s.from) / cycles * width), height);
  }
  const by = Object.entries(path.by_cause).sort((a, b) => b[1] - a[1]);
  const most = Math.max(1, ...by.map((b) => b[1]));
  const show = (s) => {
    const at = /chip(\d+)\.site\((\d+),(\d+)\)/.exec(s.unit);
    if (!at) return '';
    return element('button', {onclick: () => { to({chip: Number(at[1]), site: [Number(at[2]), Number(at[3])], time: Math.min(time.bins, 1 + Math.floor(s.from / time.width))}); $('chip').scrollIntoView({block: 'center'}); $('chip').focus(); }}, 'show');
  };
  return [element('h2', {}, 'Critical path'),
    element('p', {class: 'dim'}, `${format(path.pieces)} pieces that follow each other without a gap, ${format(path.sum)} cycles, up to ${path.ends_at}`), c,
    element('div', {class: 'panes'},
      element('div', {class: 'pane', id: 'path-causes'}, table([{title: 'piece'}, {title: 'cycles', number: true}, {title: 'share', number: true}, {title: ''}],
        by.map(([name, n]) => [name.replace('_', ' '), format(n), share(n / cycles), element('meter', {min: 0, max: most, value: n, 'aria-label': name})]))),
      element('div', {class: 'pane'}, table([{title: 'from', number: true}, {title: 'cycles', number: true}, {title: 'piece'}, {title: 'of'}, {title: ''}],
        path.longest.map((s) => [format(s.from), format(s.cycles), s.what.replace('_', ' '), s.unit, show(s)]), 12)))];
}

function stageTable() {
  if (!report) return [];
  const rows = report.stages.map((s) => [s.name, s.site, format(s.cycles), format(s.predicted_cycles), s.cycles ? share(s.busy / s.cycles) : '–',
    s.cycles ? share(causes.reduce((n, c) => n + ((s.stall || {})[c] || 0), 0) / s.cycles) : '–']);
  return [element('h2', {}, 'Stages'), element('div', {id: 'stages'}, table([{title: 'stage'}, {title: 'slowest instance'}, {title: 'cycles', number: true}, {title: 'predicted', number: true}, {title: 'busy', number: true}, {title: 'waiting', number: true}], rows, 64))];
}

function show() {
  page.clear();
  const run = $('run');
  run.replaceChildren(element('strong', {}, `${data.program} on ${data.target}`), `, ${chipCount} chip${chipCount === 1 ? '' : 's'}`,
    report ? ', ' : '', report ? element('span', {class: report.verdict === 'pass' ? 'good' : 'bad'}, report.verdict) : '', `, ${format(data.cycles)} cycles`,
    report ? `, ${format(report.cycles.predicted)} predicted, at least ${format(report.cycles.lower_bound)}` : '');
  $('main').replaceChildren(...data.notes.map((n) => element('p', {class: 'notice'}, n)), ...machine(), ...causeTable(), ...criticalPath(), ...roofline(), ...stageTable());
  update();
  document.body.dataset.ready = 'view';
}
readAddress();
addEventListener('hashchange', () => { readAddress(); show(); });
page.start(show);
})();
