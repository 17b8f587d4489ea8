// Opens a Chrome trace in speedscope, in headless Chromium: it is taken without a warning, and has the run's slices.
//
//   node speedscope_test.mjs TRACE.json FOLDER [CHROMIUM]
//
// Needs speedscope and playwright-core, below the folder that NODE_MODULES names; a screenshot goes to FOLDER. The last line is
// 'N passed, N failed'.
import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';
import {resolve, join, dirname} from 'node:path';
import {existsSync, readFileSync, writeFileSync} from 'node:fs';

const [trace, folder, given] = process.argv.slice(2);
const modules = process.env.NODE_MODULES || '.';
const require = createRequire(resolve(modules, 'x.js'));
const {chromium} = require('playwright-core');
const executablePath = given || ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
let passed = 0, failed = 0;
function check(what, holds, detail = '') {
  if (holds) ++passed;
  else { ++failed; console.error(`failed: ${what} ${detail}`); }
}

const events = JSON.parse(readFileSync(trace, 'utf8'));
const list = Array.isArray(events) ? events : events.traceEvents;
const slices = list.filter((e) => e.ph === 'X' || e.ph === 'B');
const fractions = list.filter((e) => e.ts !== undefined && !Number.isInteger(e.ts));
check('it has slices', slices.length > 20, String(slices.length));
check('its times are whole numbers', fractions.length === 0);

// What speedscope itself does for `speedscope FILE`: a script beside the page hands the file over.
const release = resolve(modules, 'node_modules/speedscope/dist/release');
const handed = resolve(folder, 'speedscope-input.js');
writeFileSync(handed, `speedscope.loadFileFromBase64('run.json', '${readFileSync(trace).toString('base64')}')`);
const browser = await chromium.launch({executablePath, args: ['--no-sandbox', '--allow-file-access-from-files', '--use-gl=swiftshader', '--enable-webgl', '--ignore-gpu-blocklist', '--enable-unsafe-swiftshader']});
const page = await browser.newPage({viewport: {width: 1280, height: 800}});
const problems = [];
// The browser's own words about its drawing in software are not about the trace.
page.on('console', (m) => { if (['warning', 'error'].includes(m.type()) && !/GPU|WebGL|GL Driver|swiftshader/i.test(m.text())) problems.push(m.text()); });
page.on('pageerror', (e) => problems.push(e.message));
page.on('dialog', (d) => { problems.push(d.message()); d.dismiss(); });
await page.goto(`${pathToFileURL(join(release, 'index.html')).href}#localProfilePath=${encodeURIComponent(handed)}`);
let title = '';
for (let i = 0; i < 120 && !title.includes('run.json') && !/chip/.test(title); ++i) {
  await page.waitForTimeout(250);
  title = await page.evaluate(() => document.title + ' ' + document.body.innerText);
}
check('speedscope shows a process of the run', /chip ?\d+/.test(title), title.slice(0, 300));
check('without a warning or an error', problems.length === 0, problems.slice(0, 5).join('\n'));
await page.screenshot({path: `${folder}/speedscope.png`});
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
