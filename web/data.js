// SPDX-License-Identifier: MIT
// The data within the page, unpacked when it is first asked for.

let loading = null;

function pageData() {
  loading = loading || unpack();
  return loading;
}

async function unpack() {
  const element = document.getElementById('assay-data');
  if (!element) return null;
  const bytes = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
  let stream = new Blob([bytes]).stream();
  if (element.dataset.encoding === 'deflate') {
    stream = stream.pipeThrough(new DecompressionStream('deflate'));
  }
  return withNames(JSON.parse(await new Response(stream).text()));
}

// What profiles call functions: the text, by which name both sides know it, and the flags.
const KERNEL = 1;
const MORE = 8;
const LESS = 16;

// A column of whole numbers, as src/report/page/columns.h has it; older pages have numbers.
function columnOf(column) {
  if (typeof column !== 'string') return column;
  const digits = column.charCodeAt(0) - 48;
  const count = (column.length - 1) / digits;
  const values = new Float64Array(count);
  for (let d = digits; d > 0; d--) {
    const first = 1 + (d - 1) * count;
    for (let i = 0; i < count; i++) {
      const code = column.charCodeAt(first + i);
      values[i] = values[i] * 91 + code - (code > 92 ? 36 : 35);
    }
  }
  return values;
}

function unpackProfile(profile) {
  for (const key of ['up', 'depth', 'name', 'samples', 'weight', 'order']) {
    if (profile[key]) profile[key] = columnOf(profile[key]);
  }
  for (const part of [profile.moments, profile.waits]) {
    for (const key of ['us', 'node', 'thread', 'length_us', 'name']) if (part && part[key]) part[key] = columnOf(part[key]);
  }
  let last = -1;
  if (profile.up) profile.depth = profile.up.map((up) => (last = last + 1 - up));
}

function withNames(data) {
  data.profiles.forEach(unpackProfile);
  const { text, flags, known_as: other } = data.names;
  const known = new Map(other);
  data.functions = text.map((name, i) => ({ name, known: known.get(i) ?? name, flags: flags[i] }));
  return data;
}

// Each unit's next smaller one, as in src/base/measured.c.
const SMALLER = { 'Gbit/s': ['Mbit/s', 1000], 'Mbit/s': ['kbit/s', 1000], 'kbit/s': ['bit/s', 1000],
  'GB/s': ['MB/s', 1000], 'MB/s': ['kB/s', 1000], 'kB/s': ['B/s', 1000], 'GiB/s': ['MiB/s', 1024],
  'MiB/s': ['KiB/s', 1024], 'KiB/s': ['B/s', 1024], s: ['ms', 1000], ms: ['µs', 1000], us: ['ns', 1000],
  µs: ['ns', 1000] };

const LARGER = { us: ['ms', 1000], // the first that fits
  ...Object.fromEntries(Object.entries(SMALLER).map(([unit, [smaller, size]]) => [smaller, [unit, size]]).reverse()) };

const grouped = (x, decimals) => x.toLocaleString('en-US', { minimumFractionDigits: decimals, maximumFractionDigits: decimals });

// Four digits.
function fourDigits(x) {
  const size = Math.abs(x);
  return grouped(x, size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3);
}

function plainNumber(x) {
  const size = Math.abs(x);
  if (size >= 1e15 || (x !== 0 && size < 1e-3)) return String(Number(x.toPrecision(4)));
  if (Number.isInteger(x) || size >= 9999.5) return grouped(x, 0);
  return size < 0.0995 ? x.toFixed(size < 0.00995 ? 5 : 4) : fourDigits(x);
}

// A number as assay's own tables write it (src/base/measured.c).
function measured(value, unit) {
  if (value === null || !Number.isFinite(value)) return '-';
  if (unit === 'ns') {
    const [size, name] = [[1, 'ns'], [1e3, 'µs'], [1e6, 'ms']].find(([step]) => Math.abs(value) < 999.95 * step) ?? [1e9, 's'];
    return `${value === 0 ? '0' : fourDigits(value / size)} ${name}`;
  }
  if (unit === 'bytes') {
    const three = (x) => (Math.abs(x) >= 100 ? x.toFixed(0) : x.toPrecision(3));
    const units = [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 1024]];
    for (const [name, size] of units) if (Math.abs(value) >= size) return `${three(value / size)} ${name}`;
    return `${value} B`;
  }
  const smaller = SMALLER[unit], larger = LARGER[unit];
  if (smaller && value !== 0 && Math.abs(value) < 0.1) return measured(value * smaller[1], smaller[0]);
  if (larger && Math.abs(value) >= 9999.5) return measured(value / larger[1], larger[0]);
  return unit ? `${plainNumber(value)} ${unit}` : plainNumber(value);
}

function make(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}
