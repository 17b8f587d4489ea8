// What every page of rdusim's has in common: the data block of the page that it stands in, elements, numbers, tables, charts, light and
// dark. Nothing is fetched. Its page's own script comes after it, and calls start().
'use strict';
const page = (() => {
const data = JSON.parse(document.getElementById('data').textContent);
const charts = typeof echarts !== 'undefined';
const $ = (id) => document.getElementById(id);
let drawn = [];  // charts of the present view

function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) e.setAttribute(key, value === true ? '' : value);
  }
  e.append(...children.filter((c) => c !== null));
  return e;
}
function format(v, unit) {
  if (v === null || v === undefined) return '–';
  if (Number.isInteger(v)) return v.toLocaleString('en-US');
  return unit === 's' ? v.toPrecision(4) : v.toLocaleString('en-US', {maximumSignificantDigits: 5});
}

function table(columns, rows, limit = 500) {
  const head = element('tr', {}, ...columns.map((c) => element('th', {class: c.number ? 'number' : null}, c.title)));
  const body = element('tbody');
  const add = (from, to) => rows.slice(from, to).forEach((row) => body.append(element('tr', {}, ...row.map((cell, i) =>
    element('td', {class: columns[i].number ? 'number' : null}, cell === null ? '–' : cell)))));
  add(0, limit);
  const box = element('div', {class: 'scroll'}, element('table', {}, element('thead', {}, head), body));
  if (rows.length <= limit) return box;
  const more = element('button', {onclick: () => { add(limit, rows.length); more.remove(); }}, `show all ${rows.length} rows`);
  return element('div', {}, box, more);
}

// A chart with its table behind it; without the library the table is open.
function chart(option, columns, rows, name) {
  const behind = element('details', {open: !charts}, element('summary', {}, 'Table'));
  const fill = () => { if (behind.open && behind.childElementCount === 1) behind.append(table(columns, rows)); };
  behind.addEventListener('toggle', fill);
  if (!charts) { fill(); return element('div', {}, behind); }
  const box = element('div', {class: 'chart', 'data-chart': name});
  queueMicrotask(() => {
    const c = echarts.init(box, document.documentElement.dataset.theme === 'dark' ? 'dark' : null, {renderer: 'svg'});
    c.setOption({backgroundColor: 'transparent', animation: false, tooltip: {trigger: 'axis', renderMode: 'richText', confine: true},
                 grid: {left: 12, right: 24, top: 56, bottom: 34, containLabel: true}, legend: {type: 'scroll', top: 0}, ...option,
                 xAxis: {nameLocation: 'middle', nameGap: 30, ...option.xAxis}});
    drawn.push(c);
  });
  return element('div', {}, box, behind);
}

function clear() {
  drawn.forEach((c) => c.dispose());
  drawn = [];
}

// `show` draws the page, again whenever light turns to dark.
function start(show) {
  const theme = (name) => { document.documentElement.dataset.theme = name; };
  const dark = matchMedia('(prefers-color-scheme: dark)');
  theme(dark.matches ? 'dark' : 'light');
  dark.addEventListener('change', (e) => { theme(e.matches ? 'dark' : 'light'); show(); });
  $('theme').addEventListener('click', () => { theme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'); show(); });
  addEventListener('resize', () => drawn.forEach((c) => c.resize()));
  if (!charts) $('notice').hidden = false;
  show();
}

return {data, charts, $, element, format, table, chart, clear, start};
})();
