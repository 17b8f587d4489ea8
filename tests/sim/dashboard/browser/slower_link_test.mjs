// Reads the dashboard of a history in which one link became slower, in headless Chromium: what the gate found and compare named
// stands on the page, with the same numbers.
//
//   node slower_link_test.mjs PAGE.html FOLDER [CHROMIUM]
//
// FOLDER has gate.json, compare.json, and the reports before.json and after.json; screenshots go there. The last line is
// 'N passed, N failed'.
import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';
import {resolve} from 'node:path';
import {existsSync, readFileSync} from 'node:fs';

const [page_file, folder, given] = process.argv.slice(2);
const require = createRequire(resolve(process.env.NODE_MODULES || '.', 'x.js'));
const {chromium} = require('playwright-core');
const executablePath = given || ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
const json = (name) => JSON.parse(readFileSync(`${folder}/${name}.json`, 'utf8'));

let passed = 0, failed = 0;
function check(what, holds, detail = '') {
  if (holds) ++passed;
  else { ++failed; console.error(`failed: ${what} ${detail}`); }
}
const number = (v) => v.toLocaleString('en-US');

// What compare found, chips folded as a history does: the longest-waiting stage, and what it waits for.
const before = json('before').cycles, after = json('after').cycles;
const moved = json('compare').pairs[0].metrics.filter((m) => m.kind === 'exact');
const stalls = moved.filter((m) => /^stages\..*\.stall\.link$/.test(m.name) && m.new > m.old);
check('compare names stages that wait longer for a link', stalls.length > 0);
const stages = new Set(stalls.map((m) => m.name.replace(/_c\d+(_c\d+)?(?=\.stall)/, '')));
const findings = json('gate').programs[0].findings.map((f) => f.metric);
check('the gate found the cycles', findings.includes('cycles.simulated'), findings.slice(0, 5).join(' '));
check('the gate found the stage and its cause', [...stages].some((s) => findings.includes(s)), [...stages].slice(0, 3).join(' '));

const browser = await chromium.launch({executablePath, args: ['--no-sandbox']});
const page = await browser.newPage({viewport: {width: 1280, height: 900}});
const problems = [];
page.on('pageerror', (e) => problems.push(e.message));
await page.goto(pathToFileURL(resolve(page_file)).href);
await page.waitForSelector('body[data-ready="/"]');
const row = await page.$$eval('tbody tr:first-child td', (cells) => cells.map((c) => c.textContent));
check('the overview says that the gate failed', row[3] === 'pass, gate failed', row.join('|'));
check('with the cycles of the last run', row[4] === number(after.simulated), row.join('|'));
const percent = (after.simulated / before.simulated - 1) * 100;
check('and by how much they rose', row[5] === `+${percent.toFixed(2)} %`, row.join('|'));
await page.screenshot({path: `${folder}/overview.png`});

await page.click('tbody a');
await page.click('text=what changed in the last run');
await page.waitForSelector('[data-chart="diff"] svg path', {state: 'attached'});
await page.click('summary');
await page.waitForSelector('details table');
const causes = await page.$$eval('details tbody tr', (rows) => rows.map((r) => [...r.children].map((c) => c.textContent)));
const whole = (text) => Number(text.replaceAll(',', ''));
const worst = causes.reduce((a, b) => (whole(b[3]) > whole(a[3]) ? b : a));
check('the cause that grew most is the link', worst[0] === 'link', JSON.stringify(causes));
check('with the report\'s cycles', worst[1] === number(before.causes.simulated.link) && worst[2] === number(after.causes.simulated.link), worst.join('|'));
const sum = causes.reduce((s, r) => s + whole(r[3]), 0);
check('the differences of all causes sum to that of the cycles', sum === after.simulated - before.simulated, `${sum}`);
const metrics = await page.$$eval('h2 ~ div.scroll tbody tr td:first-child, h2 ~ div div.scroll tbody tr td:first-child', (cells) => cells.map((c) => c.textContent));
check('the stage that waits for the link is among what moved', metrics.some((m) => stages.has(m)), `${metrics.length} metrics`);
await page.screenshot({path: `${folder}/diff.png`, fullPage: true});

await page.evaluate(() => { location.hash = '/metric/down/sn40l/8/causes.link'; });
await page.waitForSelector('body[data-ready="/metric/down/sn40l/8/causes.link"]');
await page.click('summary');
await page.waitForSelector('details table');
const steps = await page.$$eval('details tbody tr', (rows) => rows.map((r) => [...r.children].map((c) => c.textContent)));
check('the metric has a row a commit, the newest first', steps.length === 2 && steps[0][1] === 'c1' && steps[1][7] === 'first', JSON.stringify(steps));
check('no error on the page', problems.length === 0, problems.join('\n'));
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
