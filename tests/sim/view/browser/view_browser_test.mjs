// Looks at a run in headless Chromium: clicks, keys and the slider, values read back and held against the page's own data and
// what rdusim says; no request, no error, two widths, both themes.
//
//   node view_browser_test.mjs FOLDER [CHROMIUM]
//
// FOLDER has log.html of the 16-chip example's event log, report.html of its report, wide.html of a run over 256 chips, path.json
// and report.json of the example; screenshots go there. Needs playwright-core, below the folder that NODE_MODULES names. The
// last line is 'N passed, N failed'.
import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';
import {resolve} from 'node:path';
import {existsSync, readFileSync} from 'node:fs';

const [folder, given] = process.argv.slice(2);
const require = createRequire(resolve(process.env.NODE_MODULES || '.', 'x.js'));
const {chromium} = require('playwright-core');
const executablePath = given || ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

let passed = 0, failed = 0;
function check(what, holds, detail = '') {
  if (holds) ++passed;
  else { ++failed; console.error(`failed: ${what} ${detail}`); }
}
const number = (text) => Number(text.replaceAll(',', ''));

const browser = await chromium.launch({executablePath, args: ['--no-sandbox']});
async function open(name, width, hash = '') {
  const page = await browser.newPage({viewport: {width, height: 900}, colorScheme: 'light'});
  page.problems = [];
  page.requests = [];
  page.on('console', (m) => { if (m.type() === 'error' || (m.type() === 'warning' && !m.text().includes('willReadFrequently'))) page.problems.push(m.text()); });
  page.on('pageerror', (e) => page.problems.push(e.message));
  page.on('request', (r) => page.requests.push(r.url()));
  const began = Date.now();
  await page.goto(pathToFileURL(resolve(folder, name)).href + hash);
  await page.waitForSelector('body[data-ready]', {timeout: 60000});
  page.took = Date.now() - began;
  page.cells = (selector) => page.$$eval(selector + ' tbody tr', (rows) => rows.map((r) => [...r.children].map((c) => c.textContent)));
  return page;
}
async function close(page, what) {
  check(`${what}: nothing was asked of any network`, page.requests.every((r) => r.startsWith('file:')), page.requests.join(' '));
  check(`${what}: no error or warning in the console`, page.problems.length === 0, page.problems.join('\n'));
  await page.close();
}
// A click at a share of an element's width and height.
async function click(page, selector, x, y) {
  const box = await (await page.$(selector)).boundingBox();
  await page.click(selector, {position: {x: x * box.width, y: y * box.height}});
}
// How many pixels of a canvas are not of the colour of its first one.
const drawn = (page, id) => page.evaluate((id) => {
  const c = document.getElementById(id), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
  const first = d.slice(0, 4).join();
  let n = 0;
  for (let i = 0; i < d.length; i += 4) n += d.slice(i, i + 4).join() !== first ? 1 : 0;
  return n;
}, id);
const pixel = (page, id, x, y) => page.evaluate(([id, x, y]) => {
  const c = document.getElementById(id), scale = c.width / parseFloat(c.style.width);
  return [...c.getContext('2d').getImageData(x * scale, y * scale, 1, 1).data].join();
}, [id, x, y]);

const report = JSON.parse(readFileSync(resolve(folder, 'report.json'), 'utf8'));
const path = JSON.parse(readFileSync(resolve(folder, 'path.json'), 'utf8'));
for (const width of [1280, 390]) {
  const page = await open('log.html', width);
  const bin = await page.evaluate(() => page.data.time.width);
  const span = (t) => `cycles ${((t - 1) * bin).toLocaleString('en-US')} to ${(t * bin - 1).toLocaleString('en-US')}`;
  const busyBin = 1 + Math.floor(5000 / bin);  // the launch is over, the matmul is not
  const fits = async (what) => {
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    check(`width ${width}: ${what} fits the width`, over <= 0, `${over} px too wide`);
  };
  check(`width ${width}: the page is there in less than four seconds`, page.took < 4000, `${page.took} ms`);
  check('it says the run', (await page.textContent('#run')).includes(`pass, ${report.cycles.simulated.toLocaleString('en-US')} cycles`));
  check('the machine is drawn', await drawn(page, 'machine') > 2000);
  await fits('the page');
  await page.screenshot({path: `${folder}/view-${width}.png`, fullPage: true});

  // A site that is clicked shows what the report says of its stage.
  const stage = report.stages.find((s) => s.name === 'down.matmul_c0');
  const [, chip, x, y] = /chip(\d+)\.site\((\d+),(\d+)\)/.exec(stage.site).map(Number);
  check('the example\'s busiest matmul is on the first chip', chip === 0);
  const mesh = await page.evaluate(() => page.data.machine);
  await click(page, '#chip', (x + 0.5) / mesh.width, (y + 0.5) / mesh.height);
  check('a click chooses the site under it', await page.textContent('#site-name') === `chip0.site(${x},${y})`, await page.textContent('#site'));
  const row = (await page.cells('#site')).find((r) => r[0] === 'down.matmul_c0');
  check('its matmul was busy as the report says', row && number(row[3]) === stage.busy && number(row[2]) === stage.firings, String(row));
  check('and waited as the report says', row && row[5].includes('input starvation ' + stage.stall.input_starvation.toLocaleString('en-US')), String(row));
  check('what it did over time is drawn', await drawn(page, 'life') > 1000);
  await page.screenshot({path: `${folder}/site-${width}.png`});

  // The slider: the matmul ends long before the run does.
  const said = () => page.textContent('#said');
  await page.selectOption('#stage', 'down.matmul');
  await page.$eval('#time', (e) => { e.value = 1 + Math.floor(5000 / page.data.time.width); e.dispatchEvent(new Event('input')); });
  check('early the matmul is at work', /busy [1-9]/.test(await said()) && (await said()).includes(span(busyBin)), await said());
  const early = await pixel(page, 'chip', ...await page.evaluate(([x, y]) => { const c = document.getElementById('chip'), w = parseFloat(c.style.width) / page.data.machine.width; return [(x + 0.3) * w, (y + 0.3) * w]; }, [x, y]));
  await page.$eval('#time', (e) => { e.value = e.max; e.dispatchEvent(new Event('input')); });
  check('late it is not', (await said()).includes('busy 0.0 %'), await said());
  const late = await pixel(page, 'chip', ...await page.evaluate(([x, y]) => { const c = document.getElementById('chip'), w = parseFloat(c.style.width) / page.data.machine.width; return [(x + 0.3) * w, (y + 0.3) * w]; }, [x, y]));
  check('its colour follows', early !== late, `${early} ${late}`);

  // The keyboard alone.
  await page.focus('#time');
  await page.keyboard.press('Home');
  check('Home is the whole run', (await page.textContent('#when')) === 'whole run');
  await page.focus('#machine');
  await page.keyboard.press('ArrowRight');
  check('an arrow key chooses the next chip', (await page.textContent('#chip-panel h2')) === 'Chip 1');
  await page.keyboard.press('Enter');
  const at = await page.textContent('#site-name');
  check('Enter goes to its sites', at.startsWith('chip1.site('), at);
  await page.keyboard.press('ArrowRight');
  check('an arrow key goes on to the next site', (await page.textContent('#site-name')) !== at);
  check('the address keeps what was chosen', page.url().includes('chip=1') && page.url().includes('site='));
  await page.selectOption('#colour', 'cause');
  check('causes have letters beside colours', (await page.textContent('#legend')).includes('I input starvation'));

  // Tables.
  const causes = await page.cells('#causes');
  const all = causes.find((r) => r[0] === 'all');
  check('the causes add up to the total', number(all[1]) === report.cycles.simulated && number(all[4]) === report.cycles.predicted, String(all));
  const pieces = await page.cells('#path-causes');
  check('the critical path is the command\'s', pieces.reduce((n, r) => n + number(r[1]), 0) === path.sum && path.sum === report.cycles.simulated, String(pieces[0]));
  await page.waitForSelector('[data-chart="roofline"] svg path', {state: 'attached'});
  await page.click('summary');
  await page.waitForSelector('details table');
  const roof = await page.cells('details');
  check('every stage that works for a matmul is on the roofline', roof.length === Math.min(500, report.stages.filter((s) => s.macs && s.moved_bytes).length) && roof.length > 100, String(roof.length));
  const under = report.stages.filter((s) => s.macs && s.name.startsWith('down.load_')).every((s) => s.moved_bytes / s.cycles <= report.roofline.hbm_bytes_per_cycle);
  check('no load is above the roof of its memory', under);
  await fits('the page with a site');

  const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await colour();
  await page.click('#theme');
  check('dark is another colour than light', await colour() !== light);
  await page.screenshot({path: `${folder}/view-dark-${width}.png`, fullPage: true});
  await close(page, 'a log');

  const again = await open('log.html', width, `#chip=5&site=${x},${y}&time=3&colour=stall`);
  check('an address opens what it names', (await again.textContent('#site-name')) === `chip5.site(${x},${y})` && (await again.textContent('#when')) === span(3));
  await close(again, 'an address');

  const short = await open('report.html', width);
  check('a page of a report says what it lacks', (await short.textContent('#main .notice')).includes('Made of a report'));
  check('it has no time', await short.isDisabled('#time'));
  const sum = (await short.cells('#causes')).find((r) => r[0] === 'all');
  check('it has the causes', number(sum[1]) === report.cycles.simulated);
  await short.screenshot({path: `${folder}/report-${width}.png`, fullPage: true});
  await close(short, 'a report');
}

const wide = await open('wide.html', 1280);
check('256 chips are there in less than eight seconds', wide.took < 8000, `${wide.took} ms`);
check('256 chips are drawn', await drawn(wide, 'machine') > 2000);
await click(wide, '#machine', 0.97, 0.97);
check('the last of them can be chosen', (await wide.textContent('#chip-panel h2')) === 'Chip 255', await wide.textContent('#chip-panel h2'));
const began = Date.now();
for (let t = 1; t <= 10; ++t) await wide.$eval('#time', (e, t) => { e.value = t; e.dispatchEvent(new Event('input')); }, t);
check('and ten moves of the slider take less than three seconds', Date.now() - began < 3000, `${Date.now() - began} ms`);
check('a page of 256 chips is a few megabytes', readFileSync(resolve(folder, 'wide.html')).length < 6e6);
await wide.screenshot({path: `${folder}/wide.png`, fullPage: true});
await close(wide, '256 chips');
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
