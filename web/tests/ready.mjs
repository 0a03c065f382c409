// SPDX-License-Identifier: MIT
// For bench/html: how many milliseconds each page takes until its scripts have run, nine times, and
// how many until its first flame graph has been drawn again (the slowest of several ways).
import { chromium } from 'playwright-core';

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});

async function readyTimes(path) {
  const times = [];
  for (let turn = 0; turn < 10; turn++) {
    const page = await browser.newPage();
    await page.goto(`file://${path}`);
    const time = await page.evaluate(() => {
      const entry = performance.getEntriesByType('navigation')[0];
      return document.documentElement.dataset.ready === '1' ? entry.domContentLoadedEventEnd : NaN;
    });
    if (turn) times.push(time); // the first also waits for the browser itself
    await page.close();
  }
  return times;
}

// From the event to the frame that shows its result.
async function redrawTime(path) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.goto(`file://${path}`);
  if (!await page.locator('.flame-tools').count()) {
    await page.close();
    return null;
  }
  await page.locator('svg.flame').first().focus();
  await page.waitForSelector('svg.flame ~ .detail', { state: 'attached' });
  if (await page.locator('.when').count()) {
    await page.locator('.when').first().scrollIntoViewIfNeeded();
    await page.waitForSelector('.when[data-ready="1"]');
  }
  const time = await page.evaluate(async () => {
    const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
    const frame = () => new Promise((resolve) => { requestAnimationFrame(() => setTimeout(resolve)); });
    const svg = document.querySelector('svg.flame');
    const tools = document.querySelector('.flame-tools');
    const heat = document.querySelector('svg.heat');
    const ways = {
      zoom: (turn) => {
        const rects = [...svg.querySelectorAll('rect')];
        const box = rects[turn % 2 ? 0 : Math.min(3, rects.length - 1)].getBoundingClientRect();
        svg.dispatchEvent(new MouseEvent('click', { clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 }));
      },
      invert: (turn) => {
        const box = tools.querySelector('[data-act=invert]');
        box.checked = turn % 2 === 0;
        box.dispatchEvent(new Event('input', { bubbles: true }));
      },
      search: (turn) => {
        const box = tools.querySelector('[data-act=search]');
        box.value = turn % 2 ? '' : 'a';
        box.dispatchEvent(new Event('input', { bubbles: true }));
      },
    };
    if (heat) {
      ways.range = () => {
        heat.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', shiftKey: true }));
        heat.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));
      };
    }
    const slowest = {};
    for (const [name, act] of Object.entries(ways)) {
      const times = [];
      for (let turn = 0; turn < 6; turn++) {
        await frame();
        const before = performance.now();
        act(turn);
        await frame();
        if (turn) times.push(performance.now() - before);
      }
      slowest[name] = median(times);
    }
    return slowest;
  });
  await page.close();
  console.error(path.split('/').pop(), JSON.stringify(time));
  return Math.max(...Object.values(time));
}

for (const path of process.argv.slice(2)) {
  console.log(JSON.stringify({ ready: await readyTimes(path), redraw: await redrawTime(path) }));
}
await browser.close();
