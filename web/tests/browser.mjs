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

// The rules of axe-core, evaluated in the page without loosening its policy.
export async function violations(page) {
  const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
  await page.evaluate(fs.readFileSync(axe, 'utf8'));
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return result.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')}`);
}

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
