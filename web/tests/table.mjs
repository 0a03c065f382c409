// SPDX-License-Identifier: MIT
// The table of a report: sorted, filtered, grouped, opened to its runs, and saved.
import fs from 'node:fs';
import { count, done, equal, ok, open, shownRows, test, until, url } from './browser.mjs';

test('the table sorts', async () => {
  const page = await open(url('run.html'));
  const medians = () => page.$$eval('#rows > tbody > tr', (rows) => rows.map((r) => Number(r.cells[5].dataset.v)));
  const button = page.locator('#rows thead th').nth(5).locator('button');
  await button.click();
  let list = await medians();
  ok(list.every((v, i) => i === 0 || v >= list[i - 1]), 'ascending');
  equal(await page.locator('#rows thead th').nth(5).getAttribute('aria-sort'), 'ascending', 'aria-sort');
  await button.press('Enter');
  list = await medians();
  ok(list.every((v, i) => i === 0 || v <= list[i - 1]), 'descending');
  await done(page);
});

test('tables and plots are saved as CSV, SVG and PNG', async () => {
  const page = await open(url('run.html'));
  const save = async (selector) => {
    const [file] = await Promise.all([page.waitForEvent('download'), page.locator(selector).first().click()]);
    return fs.readFileSync(await file.path());
  };
  const csv = (await save('#table .export button')).toString();
  const [head, ...lines] = csv.trim().split('\n').map((line) => [...line.matchAll(/"((?:[^"]|"")*)"|([^,]+)|(?<=,)(?=,|$)/g)].map((m) => m[1] ?? m[2] ?? ''));
  equal(head.join('|'), 'Cell|Metric|Unit|Verdict|New / base|New / base, low|New / base, high|Scale|Base|Median|95 % interval, low|95 % interval, high|Runs', 'columns');
  ok(lines.length >= 16, 'lines');
  const compared = lines.filter((fields) => fields[4]);
  ok(compared.length >= 8 && compared.length < lines.length, 'some rows are compared');
  for (const [cell, metric, unit, verdict, ratio, low, high, scale] of compared) {
    equal([unit, scale].join(), `${metric === 'throughput' ? 'MB/s' : 'ns'},ratio`, `${cell} ${metric}`);
    ok(Number(low) <= Number(ratio) && Number(ratio) <= Number(high), `${low} <= ${ratio} <= ${high}`);
    ok(/^[\w\d]/.test(verdict), `a sign before "${verdict}"`);
  }
  for (const fields of lines) ok(Number(fields[10]) <= Number(fields[9]) && Number(fields[9]) <= Number(fields[11]), fields.join());
  const svg = (await save('figure .export button:has-text("SVG")')).toString();
  ok(svg.startsWith('<svg') && /fill="rgb/.test(svg), svg.slice(0, 100));
  const png = await save('figure .export button:has-text("PNG")');
  equal(png.subarray(1, 4).toString(), 'PNG', 'a picture');
  await done(page);
});

test('the table filters and hides noise', async () => {
  const page = await open(url('run.html'));
  const before = await shownRows(page);
  await page.fill('#filter', 'size=64 threads=1');
  const few = await shownRows(page);
  ok(few > 0 && few < before, `rows after the filter: ${few} of ${before}`);
  await page.fill('#filter', '');
  equal(await shownRows(page), before, 'rows without a filter');
  await page.uncheck('#noise');
  await until(page, (n) => document.querySelectorAll('#rows > tbody > tr:not([hidden])').length > n, before);
  ok((await page.locator('#rows').textContent()).includes('steady'), 'a metric that did not change');
  await page.check('#noise');
  equal(await shownRows(page), before, 'rows without noise');
  await done(page);
});

// A page with more rows than are laid out at once: the script adds those that are in the data only.
test('every row of a long table is there, sorted, filtered, saved and printed', async () => {
  const plain = await open(url('many.html'), { javaScriptEnabled: false });
  const first = await count(plain, '#rows > tbody > tr');
  const more = parseInt(await plain.locator('#later').textContent(), 10);
  ok(first < 240 && first + more >= 260, `${first} rows and ${more} more`);
  await plain.context().close();
  const page = await open(url('many.html'));
  await until(page, () => !document.getElementById('later') && !document.getElementById('later-runs'));
  equal(await shownRows(page), first + more, 'rows');
  equal(await count(page, '#distributions tbody tr'), 260, 'rows of all runs');
  const labels = await page.$$eval('#rows > tbody > tr', (rows) => rows.map((r) => r.cells[0].textContent));
  const keys = await page.$$eval('#rows > tbody > tr', (rows) => rows.map((r) => r.cells[0].textContent + r.cells[1].textContent));
  equal(new Set(keys).size, keys.length, 'different rows');
  await page.locator('#rows .open').last().click();
  await page.waitForSelector('tr.raw .dots');
  await done(page);
  const hasty = await open(`${url('many.html')}#?q=size%3D129+variant`);
  await until(hasty, () => !document.getElementById('later'));
  equal(await shownRows(hasty), labels.filter((l) => l.includes('size=129') && l.includes('variant')).length, 'rows that the address asks for');
  await hasty.fill('#filter', '');
  const [file] = await Promise.all([hasty.waitForEvent('download'), hasty.locator('#table .export button').first().click()]);
  equal(fs.readFileSync(await file.path(), 'utf8').trim().split('\n').length, first + more + 1, 'lines of the CSV');
  await hasty.emulateMedia({ media: 'print' });
  equal(await hasty.locator('#rows > tbody > tr:visible').count(), first + more, 'rows on paper');
  await done(hasty);
});

test('every table and every picture can be saved', async () => {
  const counts = (page) => page.evaluate(() => ({
    tables: [...document.querySelectorAll('table')].filter((t) => t.tHead).length,
    csv: [...document.querySelectorAll('.export button')].filter((b) => b.textContent === 'CSV').length,
    pictures: document.querySelectorAll('svg.plot:not(.narrow), svg.flame, svg.heat, svg.tracks, .dots svg').length,
    svg: [...document.querySelectorAll('.export button')].filter((b) => b.textContent === 'SVG').length,
  }));
  const page = await open(url('run.html'));
  await page.locator('#rows .open').first().click();
  await page.waitForSelector('tr.raw .dots');
  let { tables, csv, pictures, svg } = await counts(page);
  ok(tables >= 3 && pictures >= 8, `${tables} tables, ${pictures} pictures`);
  equal([csv, svg].join(), [tables, pictures].join(), 'buttons of the report');
  const [file] = await Promise.all([page.waitForEvent('download'), page.locator('tr.raw .export button', { hasText: 'CSV' }).click()]);
  const lines = fs.readFileSync(await file.path(), 'utf8').trim().split('\n');
  ok(/^Round,Value,.*Unit$/.test(lines[0]) && lines.length === 9, lines[0]);
  ok(lines.slice(1).every((line) => Number.isFinite(Number(line.split(',')[1]))), `numbers: ${lines[1]}`);
  await page.goto(url('source.html'));
  await page.locator('.when').first().scrollIntoViewIfNeeded();
  await until(page, () => document.querySelector('.when').dataset.ready === '1');
  await page.locator('a[data-n][href="#flame-0"]', { hasText: 'always' }).first().click();
  await page.click('.flame-tools[data-for=flame-0] [data-act=around]');
  await page.waitForSelector('.sandwich .callees rect');
  ({ tables, csv, pictures, svg } = await counts(page));
  ok(pictures >= 4, `${pictures} pictures of the profile`);
  const bars = await page.$$eval('#flame-0 ~ .export', (list) => list.map((bar) => bar.previousElementSibling.className));
  equal(bars[0], 'detail', 'the buttons of the flame graph stand below it');
  equal([csv, svg].join(), [tables, pictures].join(), 'buttons of the profile');
  await done(page);
});

test('the table sorts by any column, and what has no value is last', async () => {
  const page = await open(url('failed.html'));
  const heads = await page.$$eval('#rows thead th', (list) => list.map((th) => th.textContent));
  for (const [column, head] of heads.entries()) {
    for (const way of ['ascending', 'descending']) {
      await page.locator('#rows thead button').nth(column).click();
      equal(await page.locator('#rows thead th').nth(column).getAttribute('aria-sort'), way, head);
      const keys = await page.$$eval('#rows > tbody > tr', (rows, k) => rows.map((row) => {
        const { v, l } = row.cells[k].dataset;
        return v ?? l ?? row.cells[k].textContent.replace(/^[▸–]/, '');
      }), column);
      const filled = keys.findLastIndex((key) => key !== '');
      if (head !== 'Verdict') ok(keys.slice(0, filled + 1).every((key) => key !== ''), `${head}, ${way}: ${keys}`);
      if (!['New / base', 'Base', 'Median', '95 % interval', 'Runs'].includes(head)) continue;
      const numbers = keys.filter((key) => key !== '' && Number.isFinite(Number(key))).map(Number);
      ok(numbers.every((n, i) => i === 0 || (way === 'ascending' ? n >= numbers[i - 1] : n <= numbers[i - 1])), `${head}, ${way}: ${keys}`);
    }
  }
  await page.goto(url('run.html'));
  await page.locator('#rows thead button').nth(2).click();
  const kinds = await page.$$eval('#rows > tbody > tr', (rows) => rows.map((row) => row.cells[2].className));
  const order = ['better', 'worse', 'different', 'same', 'unsure', ''];
  ok(kinds.every((kind, i) => i === 0 || order.indexOf(kind) >= order.indexOf(kinds[i - 1])), `by verdict: ${kinds}`);
  await done(page);
});

test('a metric that did not change opens to its runs, too', async () => {
  const page = await open(url('run.html'));
  await page.uncheck('#noise');
  const row = page.locator('#rows > tbody > tr[data-noise]').first();
  await row.waitFor();
  await row.locator('.open').click();
  await page.waitForSelector('tr.raw .dots');
  equal(await count(page, 'tr.raw tbody tr'), 8, 'runs');
  await done(page);
});

test('runs of a row tell their figures on focus, and which of them failed', async () => {
  const page = await open(url('failed.html'));
  const row = page.locator('#rows > tbody > tr', { hasText: 'flaky' }).first();
  await row.locator('.open').click();
  const svg = page.locator('tr.raw .dots svg');
  await svg.focus();
  const detail = page.locator('tr.raw .dots .detail');
  ok(/^round \d+.*ms/.test(await detail.textContent()), await detail.textContent());
  ok(await count(page, 'tr.raw .dots .x') >= 2, 'crosses of failed runs');
  ok((await page.locator('tr.raw .dots').textContent()).includes('✕ failed run'), 'what a cross is');
  ok((await page.locator('tr.raw table').textContent()).includes('failed'), 'in the list of runs');
  await done(page);
});

test('a row opens to every raw run', async () => {
  const page = await open(url('run.html'));
  const button = page.locator('#rows .open').nth(9);
  await button.click();
  await page.waitForSelector('tr.raw');
  equal(await count(page, 'tr.raw tbody tr'), 8, 'runs');
  equal(await button.getAttribute('aria-expanded'), 'true', 'aria-expanded');
  ok(/MB\/s|ns|µs/.test(await page.locator('tr.raw tbody').textContent()), 'values with units');
  await button.click();
  equal(await count(page, 'tr.raw'), 0, 'closed again');
  await done(page);
});

test('a comparison of two opens to the runs of both', async () => {
  const page = await open(url('two.html'));
  await page.locator('#rows .open').first().click();
  await page.waitForSelector('tr.raw');
  equal(await count(page, 'tr.raw thead th'), 4, 'columns');
  equal(await count(page, 'tr.raw tbody tr'), 8, 'runs');
  await done(page);
});

test('rows are grouped by a factor', async () => {
  const page = await open(url('run.html'));
  const before = await shownRows(page);
  await page.selectOption('#group', 'size');
  await page.waitForSelector('#rows tr.group');
  const heads = await page.$$eval('#rows tr.group', (list) => list.map((r) => r.textContent));
  ok(heads.length > 1 && heads.every((h) => /^size=/.test(h)), heads.join());
  const sizes = await page.$$eval('#rows > tbody > tr', (list) => {
    let head = '';
    return list.map((row) => {
      if (row.classList.contains('group')) head = row.textContent;
      return row.classList.contains('group') ? '' : [head, row.cells[0].textContent];
    }).filter(Boolean);
  });
  ok(sizes.every(([head, label]) => `${label} `.includes(`${head} `)), 'each row under its value');
  equal(await shownRows(page), before + heads.length, 'no row is lost');
  await page.fill('#filter', heads[0]);
  equal(await page.locator('#rows tr.group:not([hidden])').count(), 1, 'headings of what is hidden are hidden');
  const again = await open(page.url());
  await again.waitForSelector('#rows tr.group');
  await done(again);
  await done(page);
});

test('what moved comes first, the baseline last', async () => {
  const page = await open(url('run.html'));
  const kinds = await page.$$eval('#rows > tbody > tr', (list) => list.map((r) => [r.cells[1].textContent, r.cells[2].className || 'none']));
  const [[metric]] = kinds;
  const rank = { better: 0, worse: 0, different: 0, same: 1, unsure: 1, none: 2 };
  const list = kinds.filter(([m]) => m === metric).map(([, k]) => rank[k]);
  ok(list.every((r, i) => i === 0 || r >= list[i - 1]), list.join());
  equal(list[list.length - 1], 2, 'the baseline');
  await done(page);
});
