// Reads a VCD with vcd-stream (npm; the reader of VCDrom), and holds every change that it tells against what GTKWave's reader
// told of the same file: two readers that share no code.
//
//   node vcd_reader_test.mjs WAVE.vcd GTKWAVE.vcd
//
// GTKWAVE.vcd is what vcd2fst and fst2vcd made of WAVE.vcd. Needs vcd-stream, below the folder that NODE_MODULES names. Its WASM
// parser takes pieces of 64 KiB, and loses a declaration that two of them share: they end where lines do. The last line is 'N passed, N failed'.
import {createRequire} from 'node:module';
import {resolve} from 'node:path';
import {readFileSync} from 'node:fs';

const [wave, gtkwave] = process.argv.slice(2);
const require = createRequire(resolve(process.env.NODE_MODULES || '.', 'x.js'));
const createVCD = require('vcd-stream/out/vcd.js'), vcdParser = require('vcd-stream/lib/web-vcd-parser.js');
let passed = 0, failed = 0;
function check(what, holds, detail = '') {
  if (holds) ++passed;
  else { ++failed; console.error(`failed: ${what} ${detail}`); }
}

// name -> "time value" of each change; a value that is told twice is one.
class Waveform {
  changes = new Map();
  put(name, time, value) {
    if (!this.changes.has(name)) this.changes.set(name, []);
    const list = this.changes.get(name);
    if (list.length && list[list.length - 1][1] === value) return;
    list.push([time, value]);
  }
  text(name) { return (this.changes.get(name) || []).map((c) => c.join(':')).join(' '); }
  get size() { return [...this.changes.values()].reduce((n, c) => n + c.length, 0); }
}

const parser = await vcdParser(await createVCD());
const told = [];
parser.on('error', (e) => check('it is read without an error', false, String(e)));
// 14 and 15 are a bit that is 0 or 1, 30 is a number.
parser.change.any((id, time, kind, value) => told.push([id, Number(time), kind === 14 ? 0 : kind === 15 ? 1 : Number(value), kind]));
const bytes = readFileSync(wave);
for (let from = 0; from < bytes.length;) {
  const to = bytes.length - from <= 65536 ? bytes.length : bytes.lastIndexOf(10, from + 65536) + 1;
  await new Promise((done) => parser.write(bytes.subarray(from, to), done));
  from = to;
}
const names = new Map();
(function walk(scope, path) {
  for (const item of scope.body || []) {
    if (item.kind === 'scope') walk(item, [...path, item.name]);
    else names.set(item.link, [...path, item.name].join('.'));
  }
})(parser.info.wires, []);
const first = new Waveform();
for (const [id, time, value] of told) first.put(names.get(id), time, value);
check('every change is of a signal that was declared, and of a kind that rdusim writes', told.every(([id, , , kind]) => names.has(id) && [14, 15, 30].includes(kind)));

const second = new Waveform();
const path = [], ids = new Map();
let time = 0;
for (const line of readFileSync(gtkwave, 'utf8').split('\n')) {
  const words = line.trim().split(/\s+/);
  if (words[0] === '$scope') path.push(words[2]);
  else if (words[0] === '$upscope') path.pop();
  else if (words[0] === '$var') ids.set(words[3], [...path, words[4]].join('.'));
  else if (/^#\d/.test(line) && words.length === 1) time = Number(line.slice(1));
  else if (line.startsWith('b')) second.put(ids.get(words[1]), time, parseInt(words[0].slice(1), 2));
  else if (line.startsWith('0') || line.startsWith('1')) second.put(ids.get(line.slice(1)), time, Number(line[0]));
}
check('both readers have the same signals', first.changes.size > 20 && [...names.values()].sort().join() === [...ids.values()].sort().join(), `${names.size} and ${ids.size}`);
const differ = [...second.changes.keys()].filter((name) => first.text(name) !== second.text(name));
check('and the same changes at the same times', differ.length === 0, differ.slice(0, 3).map((n) => `${n}: ${first.text(n).slice(0, 90)} / ${second.text(n).slice(0, 90)}`).join('\n'));
check('which are many', second.size > 1000 && first.size === second.size, `${first.size} and ${second.size}`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
