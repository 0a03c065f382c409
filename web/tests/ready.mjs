// SPDX-License-Identifier: MIT
// For bench/html: how many milliseconds each page takes until its scripts have run, nine times.
import { chromium } from 'playwright-core';

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});
for (const path of process.argv.slice(2)) {
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
  console.log(JSON.stringify(times));
}
await browser.close();
