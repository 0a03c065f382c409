// SPDX-License-Identifier: MIT
// The pages of assay serve.
import { execFileSync } from 'node:child_process';
import { count, done, equal, ok, open, test, until, violations } from './browser.mjs';

test('assay serve shows readings and history', async () => {
  if (!process.env.SERVER) return;
  const page = await open(`${process.env.SERVER}?q=drift`);
  await page.click('main table a >> nth=0');
  await page.click('text=Report');
  ok(await count(page, 'figure[data-kind=monitor] svg'), 'monitors');
  ok(await count(page, 'figure[data-kind=history] svg'), 'the history in the report');
  await page.goto(`${process.env.SERVER}history?name=drift`);
  ok(/changed: ×1\.\d/.test(await page.locator('figure[data-kind=history]').first().textContent()), 'the change');
  equal((await violations(page)).join('\n'), '', 'violations of the history');
  await done(page);
});

test('no page of assay serve scrolls sideways', async () => {
  if (!process.env.SERVER) return;
  const page = await open(process.env.SERVER);
  const pages = ['', 'e/1', 'e/1/runs', 'e/1/report', 'history?name=drift', 'moved', 'compare?base=1&new=2', '99999'];
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 844 });
    for (const path of pages) {
      await page.goto(process.env.SERVER + path);
      equal(await page.evaluate(() => document.documentElement.scrollWidth), width, `${path} at ${width}`);
    }
  }
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(process.env.SERVER);
  ok(await page.$eval('#live tbody th', (th) => th.offsetWidth) < 60, 'a number takes no room of a name');
  const heights = await page.$$eval('#live tbody th a', (list) => list.map((a) => [a.textContent, a.getClientRects().length]));
  ok(heights.some(([id]) => id.length > 1) && heights.every(([, lines]) => lines === 1), 'a number is on one line');
  await page.context().close(); // a page that is not there is an error of the console
});

test('assay serve follows what is typed, and what is written', async () => {
  if (!process.env.SERVER) return;
  const page = await open(process.env.SERVER);
  const rows = () => page.locator('#live tbody tr').count();
  const before = await rows();
  await page.locator('input[name=q]').pressSequentially('drift');
  await until(page, () => location.search === '?q=drift'); // what the first letters find is the same
  ok(await page.$$eval('#live tbody tr', (list) => list.every((row) => /drift/.test(row.textContent))), 'rows of what was typed');
  ok(await rows() > 0 && await rows() < before, 'fewer rows');
  ok(page.url().endsWith('?q=drift'), page.url());
  await page.fill('input[name=q]', '');
  await until(page, (n) => document.querySelectorAll('#live tbody tr').length === n, before);
  await until(page, () => /improvement|regression/.test(document.getElementById('moved').textContent));
  ok(/drift/.test(await page.locator('#moved').textContent()), 'what moved lately');
  equal((await violations(page)).join('\n'), '', 'violations');
  // Another experiment comes into the store: the page shows it without being loaded again.
  await page.locator('#live input[name=base]').nth(1).check();
  const value = await page.locator('#live input[name=base]:checked').inputValue();
  await page.evaluate(() => { window.stays = true; });
  execFileSync(process.env.ASSAY, ['run', '--quiet', '--fresh', 'drift.yaml'], { cwd: process.env.PAGES });
  await until(page, (n) => document.querySelectorAll('#live tbody tr').length > n, before);
  equal(await page.evaluate(() => window.stays), true, 'it is the same page');
  equal(await page.locator('#live input[name=base]:checked').inputValue(), value, 'what was chosen stays');
  equal(await page.locator('#live .export button').count(), 1, 'the list is still saved as CSV');
  await done(page);
});

test('two are chosen by two clicks, also when a search lies between them', async () => {
  if (!process.env.SERVER) return;
  const page = await open(`${process.env.SERVER}?q=demo`);
  await page.locator('#live input[name=base][value="1"]').check();
  await page.locator('input[name=q]').fill('is fast faster');
  await until(page, () => location.search === '?q=is%20fast%20faster');
  await page.locator('input[name=q]').fill('drift');
  await until(page, () => !document.querySelector('#live input[name=base][value="1"]'));
  ok((await page.locator('#pair').textContent()).includes('Base: 1, new: choose one'), 'what was chosen is told');
  await page.locator('input[name=q]').fill('demo');
  await until(page, () => document.querySelector('#live input[name=base][value="1"]')?.checked);
  await page.locator('input[name=q]').fill('no such word');
  await until(page, () => !document.querySelector('#live tbody tr'));
  await page.locator('input[name=q]').fill('');
  await page.locator('#live input[name=new][value="2"]').check();
  equal((await violations(page)).join('\n'), '', 'violations');
  await page.click('#pair button');
  await page.waitForURL(/compare\?/);
  const asked = new URL(page.url()).searchParams;
  equal([asked.get('base'), asked.get('new')].join(), '1,2', page.url());
  ok((await page.locator('h1').textContent()).includes('against'), 'the comparison');
  await page.click('nav a:has-text("Experiment 2")');
  ok(page.url().endsWith('/e/2'), page.url());
  await done(page);
});

test('the page of an experiment has the verdict of its report', async () => {
  if (!process.env.SERVER) return;
  const page = await open(`${process.env.SERVER}e/1`, { viewport: { width: 1440, height: 900 } });
  const lead = await page.waitForSelector('#verdict .lead.main');
  const words = await lead.textContent();
  ok(await page.locator('#verdict figure svg').count(), 'the picture');
  equal((await violations(page)).join('\n'), '', 'violations');
  await page.goto(`${process.env.SERVER}e/1/report`);
  equal(await page.locator('.lead.main').first().textContent(), words, 'as in the report');
  await done(page);
});

test('assay serve shows the store', async () => {
  if (!process.env.SERVER) return;
  const page = await open(process.env.SERVER, { colorScheme: 'dark' });
  equal((await violations(page)).join('\n'), '', 'violations of the list');
  await page.fill('input[name=q]', 'demo');
  await page.click('form[role=search] button');
  await page.click('main table a >> nth=0');
  equal((await violations(page)).join('\n'), '', 'violations of an experiment');
  await page.click('text=Every run');
  equal((await violations(page)).join('\n'), '', 'violations of the runs');
  await page.goBack();
  await page.click('text=Report');
  await page.locator('#rows .open').first().click();
  await page.waitForSelector('tr.raw');
  const host = new URL(process.env.SERVER).host;
  ok(page.requests.every((r) => r.startsWith('data:') || new URL(r).host === host), 'requests to elsewhere');
  await done(page);
});
