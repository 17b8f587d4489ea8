// Reads a dashboard in headless Chromium: values out of the page, no request, no error, two widths, both themes.
//
//   node browser_test.mjs PAGE.html FOLDER [CHROMIUM]
//
// PAGE is of a history that make_history.py wrote, of a sweep over chips, of one over chips, links and memory, and of an accuracy table
// of two rows, the second missed; screenshots go to FOLDER. Needs
// playwright-core beside it or on NODE_PATH. The last line is 'N passed, N failed'.
import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';
import {resolve} from 'node:path';
import {existsSync} from 'node:fs';

const [page_file, folder, given] = process.argv.slice(2);
const require = createRequire(resolve(process.env.NODE_MODULES || '.', 'x.js'));
const {chromium} = require('playwright-core');
const executablePath = given || ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

let passed = 0, failed = 0;
function check(what, holds, detail = '') {
  if (holds) ++passed;
  else { ++failed; console.error(`failed: ${what} ${detail}`); }
}

const browser = await chromium.launch({executablePath, args: ['--no-sandbox']});
const url = pathToFileURL(resolve(page_file)).href;
for (const width of [1280, 390]) {
  const page = await browser.newPage({viewport: {width, height: 900}, colorScheme: 'light'});
  const problems = [], requests = [];
  page.on('console', (m) => { if (m.type() === 'error') problems.push(m.text()); });
  page.on('pageerror', (e) => problems.push(e.message));
  page.on('request', (r) => requests.push(r.url()));
  const began = Date.now();
  await page.goto(url);
  await page.waitForSelector('body[data-ready]');
  const took = Date.now() - began;
  check(`width ${width}: the overview is there in less than three seconds`, took < 3000, `${took} ms`);
  console.log(`width ${width}: the overview took ${took} ms`);
  const wait = (view) => page.waitForSelector(`body[data-ready="${view}"]`);
  const go = async (view) => { await page.evaluate((v) => { location.hash = v; }, view); await wait(view); };
  const fits = async (what) => {
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    check(`width ${width}: ${what} fits the width`, over <= 0, `${over} px too wide`);
  };
  const cells = (row) => page.$$eval(`tbody tr:nth-child(${row}) td`, (list) => list.map((c) => c.textContent));

  check('the overview has a row a series', (await page.$$('tbody tr')).length === 5);
  const first = await cells(1);
  check('its cycles are those of the last run', first[0] === 'down' && first[4] === '35,171', first.join('|'));
  check('it has sparklines', (await page.$$('svg.spark path')).length === 5);
  await fits('the overview');
  await page.screenshot({path: `${folder}/overview-${width}.png`});

  await page.fill('#search', 'up on');
  check('search leaves what it names', (await page.$$('tbody tr')).length === 4);
  await page.fill('#search', '');

  await page.click('text=down');
  await wait('/program/down/sn40l/16');
  await page.waitForSelector('[data-chart="causes"] svg path', {state: 'attached'});
  check('the causes are stacked in a chart', (await page.$$('[data-chart="causes"] svg path')).length > 2);
  await page.click('summary');
  await page.waitForSelector('details table');
  const causes = await page.$$eval('details tbody tr:first-child td', (list) => list.map((c) => c.textContent));
  check('a table stands behind the chart', causes[2] === '24,171' && causes[3] === '11,000', causes.join('|'));
  await fits('a program');
  await page.screenshot({path: `${folder}/program-${width}.png`});

  await go('/metric/down/sn40l/16/cycles.simulated');
  await page.waitForSelector('[data-chart="metric"] svg path', {state: 'attached'});
  await page.click('summary');
  await page.waitForSelector('details table');
  const table = await page.$$eval('details tbody tr', (rows) => rows.map((r) => [...r.children].map((c) => c.textContent)));
  check('the table behind a metric has the move and its reason',
        table.some((r) => r[5] === '+9.33 %' && r[7] === 'slower links, as ordered'), JSON.stringify(table[0]));
  await fits('a metric');
  await page.screenshot({path: `${folder}/metric-${width}.png`});
  await go('/metric/up/sn40l/2/host.wall_s');
  check('a timed metric shows its limit', (await page.textContent('#main')).includes('limit of the next run on host1'));

  const moved = await page.evaluate(() => {
    const data = JSON.parse(document.getElementById('data').textContent);
    const runs = data.runs.filter((r) => r.series === 0);
    const at = runs.findIndex((r) => r.decisions !== runs[0].decisions);
    return [runs[at - 1].id, runs[at].id];
  });
  await go(`/diff/${moved[0]}/${moved[1]}`);
  const text = await page.textContent('#main');
  check('two runs differ by the decision behind it', text.includes('collectives.down.all_reduce.algorithm') && text.includes('ring') && text.includes('direct'));
  check('and by its cycles', text.includes('cycles.simulated') && text.includes('32,171') && text.includes('35,171'));
  await fits('a difference');
  await page.screenshot({path: `${folder}/diff-${width}.png`});

  await go('/scaling');
  await page.waitForSelector('[data-chart="scaling"] svg path', {state: 'attached'});
  await page.click('summary');
  await page.waitForSelector('details table');
  const scaling = await page.$$eval('details tbody tr', (rows) => rows.map((r) => [...r.children].map((c) => c.textContent)));
  check('scaling has a row a number of chips', scaling.length > 4 && scaling[3][1] === '8' && scaling[0][3] === '1.00', JSON.stringify(scaling));
  check('and a line of every sweep over chips', scaling.some((r) => r[0] === 'sweep links' && r[1] === '16'), JSON.stringify(scaling));
  await go('/accuracy');
  await page.waitForSelector('[data-chart="measured"] svg path', {state: 'attached'});
  await page.waitForSelector('[data-chart="accuracy"] svg path', {state: 'attached'});
  check('accuracy says how many are within their bounds', (await page.textContent('#main')).includes('1 of 2 within their bounds'));
  await page.click('summary');
  await page.waitForSelector('details table');
  const accuracy = await page.$$eval('details tbody tr', (rows) => rows.map((r) => [...r.children].map((c) => c.textContent)));
  check('its table has what was measured, what rdusim says, and the bound', accuracy[0].join('|') === 'latency|20|20.5|+2.50 %|5 %|within', accuracy[0].join('|'));
  check('a bound that is missed is said', accuracy[1].join('|') === 'tokens|100|80|-20.00 %|15 %|missed', accuracy[1].join('|'));
  await fits('the accuracy table');
  await page.screenshot({path: `${folder}/accuracy-${width}.png`, fullPage: true});
  await go('/sweep/0/chips/cycles');
  await page.waitForSelector('[data-chart="sweep-chips"] svg path', {state: 'attached'});
  const sweep = await page.textContent('#main');
  check('a sweep has its front', /\d+ on the front/.test(sweep), sweep.slice(0, 200));
  await fits('a sweep');
  await page.screenshot({path: `${folder}/sweep-${width}.png`});
  await go('/sweep/1');
  for (const axis of ['chips', 'target.links[0].gb_per_s', 'target.pmu.capacity_bytes'])
    await page.waitForSelector(`[data-chart="sweep-${axis}"] svg path`, {state: 'attached'});
  check('cycles stand against chips, bandwidth and memory, each with its front', (await page.$$('[data-chart]')).length === 3);
  // Every front is worked out again from the points.
  const fronts = await page.evaluate(() => {
    for (const d of document.querySelectorAll('details')) d.open = true;
    const s = JSON.parse(document.getElementById('data').textContent).sweeps[1];
    const at = (name) => s.columns.indexOf(name);
    const whole = (t) => Number(t.replaceAll(',', ''));
    return new Promise((done) => setTimeout(() => done([...document.querySelectorAll('details')].map((d) => {
      const axis = d.querySelector('th').textContent;
      const points = s.rows.filter((r) => r[at('verdict')] === 'pass').map((r) => [r[at(axis)], r[at('cycles')]]);
      const best = points.filter(([x, y]) => !points.some(([a, b]) => a <= x && b <= y && (a < x || b < y)));
      const wanted = [...new Set(best.map((p) => p.join()))].sort();
      const shown = [...d.querySelectorAll('tbody tr')].map((r) => [...r.children].slice(0, 2).map((c) => whole(c.textContent)).join()).sort();
      return [axis, wanted.length, wanted.join(' '), shown.join(' ')];
    })), 200));
  });
  check('the fronts are those of their definition', fronts.length === 3 && fronts.every(([, n, a, b]) => n > 0 && a === b), JSON.stringify(fronts));
  check('more memory is worth something', fronts.some(([axis, n]) => axis === 'target.pmu.capacity_bytes' && n > 1), JSON.stringify(fronts));
  await fits('a sweep of three axes');
  await page.screenshot({path: `${folder}/sweep-axes-${width}.png`, fullPage: true});

  const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await colour();
  await page.click('#theme');
  check('dark is another colour than light', await colour() !== light);
  await page.screenshot({path: `${folder}/dark-${width}.png`});

  // A permalink opens where it points.
  const again = await browser.newPage({viewport: {width, height: 900}});
  await again.goto(url + '#/metric/up/sn40l/2/causes.link');
  await again.waitForSelector('body[data-ready="/metric/up/sn40l/2/causes.link"]');
  check('a permalink opens its page', (await again.textContent('h1')) === 'causes.link');
  await again.goto(url + '#/program/no%ZZ/such/1');
  check('an address of nothing says so', (await again.textContent('h1')) === 'Not here');
  await again.close();

  check('nothing was asked of any network', requests.every((r) => r.startsWith('file:')), requests.join(' '));
  check('no error in the console', problems.length === 0, problems.join('\n'));
  await page.close();
}
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
