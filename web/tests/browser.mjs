// SPDX-License-Identifier: MIT
// What the tests in the browser share: Debian's chromium, pages that may not ask for anything, TAP.
import { chromium } from 'playwright-core';
import { createRequire } from 'node:module';
import fs from 'node:fs';

const tests = [];

export function test(name, run) {
  tests.push({ name, run });
}

export function equal(actual, expected, what) {
  if (actual !== expected) throw new Error(`${what}: ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`);
}

export function ok(condition, what) {
  if (!condition) throw new Error(what);
}

// Waits for a condition in the page; a loaded machine gets all the time it needs.
export async function until(page, fn, argument) {
  for (let turn = 0; turn < 1200; turn++) {
    if (await page.evaluate(fn, argument)) return;
    await page.waitForTimeout(50);
  }
  throw new Error(`it does not come: ${fn}`);
}

let browser;

// Opens a page and keeps account of what must not happen: requests, errors.
export async function open(url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(240000); // time decides no test
  const page = await context.newPage();
  page.requests = [];
  page.errors = [];
  page.on('request', (request) => page.requests.push(request.url()));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) page.errors.push(message.text());
  });
  page.on('pageerror', (error) => page.errors.push(String(error)));
  await page.goto(url, { timeout: 240000 });
  return page;
}

// The contrast of texts that axe-core cannot judge (in drawings, and single signs): what lies below one
// is a box of a flame graph, else the nearest background.  Those with too little are told.
function lowContrast(targets) {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const colour = (text) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
  const below = (element) => {
    const box = element.getBoundingClientRect();
    for (const rect of element.closest('svg.flame')?.querySelectorAll('rect') ?? []) {
      const r = rect.getBoundingClientRect();
      if (r.left <= box.left && r.right >= box.left && r.top <= box.top + box.height / 2 && r.bottom >= box.top + box.height / 2) return colour(getComputedStyle(rect).fill);
    }
    for (let up = element; up; up = up.parentElement) {
      const found = colour(getComputedStyle(up).backgroundColor);
      if (found[3] > 250) return found;
    }
    return [255, 255, 255];
  };
  return targets.map((selector) => document.querySelector(selector)).filter(Boolean).map((element) => {
    const style = getComputedStyle(element);
    const [a, b] = [light(colour(element.closest('svg') ? style.fill : style.color)), light(below(element))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), element.textContent.slice(0, 40)];
  }).filter(([ratio]) => ratio < 4.5).map(([ratio, text]) => `contrast ${ratio.toFixed(2)} of "${text}"`);
}

// The rules of axe-core, evaluated in the page without loosening its policy.  What it leaves open is
// measured here or counts as a violation.
export async function violations(page) {
  const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
  await page.evaluate(fs.readFileSync(axe, 'utf8'));
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations', 'incomplete'] }));
  const open = result.incomplete.filter((rule) => rule.id === 'color-contrast').flatMap((rule) => rule.nodes.map((n) => n.target[0]));
  const words = (v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')}`;
  return [...result.violations.map(words), ...result.incomplete.filter((rule) => rule.id !== 'color-contrast').map(words),
    ...await page.evaluate(lowContrast, open)];
}

// ---- what tests of reports share ----

export const url = (name) => `file://${process.env.PAGES}/${name}`;

export async function done(page) {
  equal(page.errors.join('\n'), '', 'errors on the console');
  await page.context().close();
}

export const count = (page, selector) => page.locator(selector).count();
export const shownRows = (page) => page.locator('#rows > tbody > tr:not([hidden]):not(.raw)').count();
export const widths = (page, id) => page.$$eval(`#${id} rect`, (list) => list.map((r) => Number(r.getAttribute('width'))));
export const names = (page, id) => page.$$eval(`#${id} rect title, #${id} text`, (list) => list.map((t) => t.textContent.replace(/^(\+|−|\[k\]) /, '')));

export async function main() {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    timeout: 480000,
  });
  let failed = 0;
  for (const [index, { name, run }] of tests.entries()) {
    try {
      await run();
      console.log(`ok ${index + 1} ${name}`);
    } catch (error) {
      failed++;
      for (const line of String(error.stack || error).split('\n')) console.log(`# ${line}`);
      console.log(`not ok ${index + 1} ${name}`);
    }
  }
  console.log(`1..${tests.length}`);
  await browser.close();
  process.exitCode = failed ? 1 : 0;
}
