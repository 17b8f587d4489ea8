// What the browser tests share: headless Chromium by playwright-core, and a count of what held.
//
// playwright-core is looked for below the folder that NODE_MODULES names.
import {createRequire} from 'node:module';
import {resolve} from 'node:path';
import {existsSync} from 'node:fs';

export const modules = process.env.NODE_MODULES || '.';

// The browser at `given`, or the one that is installed; `more`: arguments beside those that every test needs.
export function launch(given, more = []) {
  const {chromium} = createRequire(resolve(modules, 'x.js'))('playwright-core');
  const executablePath = given || ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
  return chromium.launch({executablePath, args: ['--no-sandbox', ...more]});
}

let passed = 0, failed = 0;
export function check(what, holds, detail = '') {
  if (holds) ++passed;
  else { ++failed; console.error(`failed: ${what} ${detail}`); }
}

// Closes the browser and ends the test: the last line, and the status.
export async function finish(browser) {
  await browser.close();
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}
