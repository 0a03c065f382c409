// SPDX-License-Identifier: MIT
// The report in a browser: nothing is asked for, everything is there, every interaction does what
// it says.  PAGES is the folder with the pages, SERVER the address of assay serve.
import { execFileSync } from 'node:child_process';
import { count, done, equal, main, ok, open, test, until, url, violations } from './browser.mjs';

const FILES = ['run.html', 'within.html', 'two.html', 'profiles.html', 'evil.html',
  'why.html', 'reasons.html', 'source.html', 'time.html', 'failed.html', 'allfailed.html', 'stopped.html', 'long.html', 'one.html', 'many.html', 'zero.html'];

for (const name of FILES) {
  test(`${name} opens from a file, asks for nothing, and axe finds nothing`, async () => {
    const page = await open(url(name), { colorScheme: 'light' });
    equal(await page.evaluate(() => document.documentElement.dataset.ready), '1', 'ready');
    equal(page.requests.filter((r) => !r.startsWith('data:')).join(' '), url(name), 'requests');
    equal((await violations(page)).join('\n'), '', 'violations, light');
    await page.emulateMedia({ colorScheme: 'dark' });
    equal((await violations(page)).join('\n'), '', 'violations, dark');
    await done(page);
  });
}

test('everything is there without scripts', async () => {
  const page = await open(url('run.html'), { javaScriptEnabled: false });
  for (const kind of ['curve', 'ratio', 'scaling', 'efficiency', 'strip', 'ecdf', 'percentiles']) {
    ok(await count(page, `figure[data-kind=${kind}] svg`), `no plot ${kind}`);
  }
  ok(await count(page, '#rows > tbody > tr') >= 16, 'rows');
  await page.goto(url('profiles.html'));
  ok(await count(page, '#flame-diff rect') >= 4, 'differential flame graph');
  ok(await count(page, '#flame-0 rect') >= 3, 'flame graph');
  equal(await page.locator('.flame-tools').first().isVisible(), false, 'tools that need scripts');
  await page.context().close();
});

test('a plot has intervals, marks and a text for those who cannot see it', async () => {
  const page = await open(url('run.html'));
  const plot = page.locator('#plot-ratio svg:not(.narrow)');
  ok(await plot.locator('.b').count(), 'a band');
  ok(await plot.locator('.mb').count(), "the crossover's interval");
  ok((await plot.locator('desc').textContent()).includes('95 %'), 'a description');
  ok(await page.locator('#plot-scaling svg', { hasText: 'ideal' }).count(), 'the ideal line');
  ok((await page.locator('#plot-misses').textContent()).includes('PMU') ||
    await count(page, '#plot-misses svg'), 'cache misses, or why there are none');
  await done(page);
});

// How much of each verdict a reader sees: all of it, whatever the width, without scrolling sideways.
const verdictWidths = (page) => page.$$eval('#rows > tbody > tr:not([hidden]):not(.raw) > td:nth-child(3)',
  (list) => list.map((cell) => {
    const box = cell.getBoundingClientRect();
    const clip = cell.closest('.scroll').getBoundingClientRect();
    const seen = Math.min(box.right, clip.right, innerWidth) - Math.max(box.left, clip.left, 0);
    return [Math.round(box.width), Math.round(seen)];
  }));

test('the verdict column is visible at every width and on paper, and nothing scrolls sideways', async () => {
  for (const name of ['run.html', 'two.html', 'evil.html', 'failed.html', 'long.html']) {
    const page = await open(url(name));
    for (const width of [390, 1280, 1440, 1920]) {
      await page.setViewportSize({ width, height: 900 });
      const list = await verdictWidths(page);
      ok(list.length, `${name}: no verdicts`);
      for (const [whole, seen] of list) equal(seen, whole, `${name} at ${width}: visible width of a verdict`);
      equal(await page.evaluate(() => document.documentElement.scrollWidth), width, `${name}: width of the page`);
    }
    await page.setViewportSize({ width: 718, height: 1000 }); // A4 less its margins
    await page.emulateMedia({ media: 'print' });
    for (const [whole, seen] of await verdictWidths(page)) equal(seen, whole, `${name} on paper`);
    await done(page);
  }
});

test('on paper a report is laid out for paper', async () => {
  const page = await open(url('run.html'), { colorScheme: 'dark', viewport: { width: 703, height: 1000 } });
  await page.click('#theme');
  await page.click('#theme'); // dark was chosen
  const pdf = await page.pdf({ format: 'A4', margin: { top: '12mm', bottom: '12mm', left: '12mm', right: '12mm' } });
  const pages = pdf.toString('latin1').match(/\/Type \/Page\b(?!s)/g).length;
  ok(pages >= 4 && pages <= 13, `${pages} pages`);
  await page.emulateMedia({ media: 'print' });
  const style = (selector, name) => page.$eval(selector, (e, key) => getComputedStyle(e)[key], name);
  equal(await style('#rows thead', 'display'), 'table-header-group', 'the head of the table');
  equal((await style('.plots', 'gridTemplateColumns')).split(' ').length, 2, 'columns of plots');
  equal(await style('body', 'backgroundColor'), 'rgb(255, 255, 255)', 'the paper');
  equal(await style('#about h3', 'breakAfter'), 'avoid', 'a heading stays with what it heads');
  equal(await style('footer', 'breakBefore'), 'avoid', 'the footer is not alone on a page');
  for (const group of await page.locator('.multiples').all()) {
    const tops = await group.locator('figure').evaluateAll((list) => list.map((f) => Math.round(f.getBoundingClientRect().y)));
    const last = tops.filter((y) => y === tops[tops.length - 1]).length;
    ok(tops.length % 2 || last > 1, `${tops.length} plots, ${last} in the last row`);
  }
  const height = (selector) => page.$eval(selector, (e) => e.getBoundingClientRect().height);
  const words = await page.$$eval('#rows td:nth-child(2)', (list) => list.map((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return [cell.textContent, range.getClientRects().length];
  }));
  for (const [word, lines] of words) equal(lines, 1, `lines of ${word}`);
  ok(await height('dd.long') < 200 && await page.$eval('dd.long', (e) => e.offsetWidth > e.parentNode.offsetWidth / 2), 'a long value has room');
  await done(page);
});

// The words of a PDF with their places, page by page, as pdftotext has them.
function wordsOf(pdf) {
  const text = execFileSync(process.env.PDFTOTEXT, ['-bbox', '-', '-'], { input: pdf, maxBuffer: 1 << 28 }).toString();
  return text.split('<page ').slice(1).map((page) => ({
    width: Number(/width="([\d.]+)"/.exec(page)[1]),
    height: Number(/height="([\d.]+)"/.exec(page)[1]),
    words: [...page.matchAll(/<word xMin="([-\d.]+)" yMin="([-\d.]+)" xMax="([-\d.]+)" yMax="([-\d.]+)">(.*?)<\/word>/g)]
      .map(([, ...m]) => ({ left: Number(m[0]), top: Number(m[1]), right: Number(m[2]), bottom: Number(m[3]), text: m[4] })),
  }));
}

test('in the PDF every verdict is there, whole, and no page is half empty', async () => {
  if (!process.env.PDFTOTEXT) {
    console.log('# pdftotext is not installed: the words of PDFs were not looked at');
    return;
  }
  for (const name of ['run.html', 'two.html', 'failed.html', 'evil.html', 'profiles.html']) {
    const page = await open(url(name));
    const cells = await page.$$eval('#rows > tbody > tr > td:nth-child(3)', (list) => list.map((cell) => cell.textContent));
    const pages = wordsOf(await page.pdf({ format: 'A4', margin: { top: '12mm', bottom: '12mm', left: '12mm', right: '12mm' } }));
    for (const [number, { width, words }] of pages.entries()) {
      for (const word of words) ok(word.left >= 0 && word.right <= width, `${name}, page ${number + 1}: "${word.text}" is cut: ${word.left} to ${word.right} of ${width}`);
    }
    const countsOf = (texts) => {
      const counts = new Map();
      for (const word of texts.flatMap((text) => text.match(/[a-z]{4,}/g) ?? [])) counts.set(word, (counts.get(word) ?? 0) + 1);
      return counts;
    };
    const printed = countsOf(pages.flatMap((p) => p.words.map((word) => word.text)));
    const wanted = countsOf(cells);
    for (const [word, times] of wanted) ok((printed.get(word) ?? 0) >= times, `${name}: "${word}" is printed ${printed.get(word) ?? 0} times, not ${times}`);
    for (const [number, { height, words }] of pages.slice(0, -1).entries()) {
      const lowest = words.reduce((most, word) => Math.max(most, word.bottom), 0);
      ok(lowest > 0.5 * height, `${name}: page ${number + 1} of ${pages.length} ends at ${Math.round((100 * lowest) / height)} %`);
    }
    await done(page);
  }
});

test('in the PDF the head of the table stands on every page that the table has', async () => {
  if (!process.env.PDFTOTEXT) return;
  const page = await open(url('many.html'));
  const pages = wordsOf(await page.pdf({ format: 'A4', margin: { top: '12mm', bottom: '12mm', left: '12mm', right: '12mm' } }));
  const heads = pages.map(({ words }) => words.filter((word) => word.text === 'Metric')
    .some((word) => words.some((other) => other.text === 'Verdict' && Math.abs(other.top - word.top) < 2)));
  const first = heads.indexOf(true), last = heads.lastIndexOf(true);
  ok(last > first, `pages with a head: ${heads}`);
  equal(heads.slice(first, last + 1).filter((has) => !has).length, 0, 'pages between without a head');
  ok(pages[last].words.find((word) => word.text === 'Metric').top < 0.1 * pages[last].height, 'at the top of the page');
  await done(page);
});

test('on a phone single runs have headings, and four digits', async () => {
  const page = await open(url('run.html'), { viewport: { width: 390, height: 844 } });
  await page.locator('#rows .open').first().click();
  const table = page.locator('tr.raw table').first();
  await table.waitFor();
  ok(await table.locator('th').first().boundingBox(), 'the heading');
  const lefts = await table.locator('tr').evaluateAll((rows) => rows.map((row) => row.cells[1].getBoundingClientRect().x));
  equal(new Set(lefts).size, 1, 'columns');
  const values = await table.locator('tr td:nth-child(2)').allTextContents();
  ok(values.length && values.every((text) => /^(\d,)?\d{3,4} MB|^\d[\d.]{4} MB/.test(text)), values.join('; '));
  equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, 'width of the page');
  await done(page);
});

test('one cell alone has its figure, and no columns of a comparison', async () => {
  const page = await open(url('one.html'));
  const lead = await page.locator('.lead.main').textContent();
  ok(/^delay: 101 ms, the median of 3 runs \(100 ms to 102 ms\)\.$/.test(lead), lead);
  const heads = await page.$$eval('#rows thead th', (list) => list.filter((th) => th.offsetWidth).map((th) => th.textContent));
  equal(heads.join(), 'Cell,Metric,Median,95 % interval,Runs', 'columns');
  ok((await page.locator('figure[data-kind=strip] svg').first().textContent()).includes('plain'), 'the cell has a name');
  await done(page);
});

test('where there is no ratio, the first picture shows the runs, and differences have units', async () => {
  const page = await open(url('zero.html'));
  ok(await count(page, '#verdict .first figure[data-kind=strip] svg'), 'the runs');
  equal(await count(page, '.forest'), 0, 'no axis of ratios');
  ok(/10\d(\.\d)? ms more \[\d/.test(await page.locator('.lead.main').textContent()), await page.locator('.lead.main').textContent());
  ok(/10\d(\.\d)? ms more \[\d/.test(await page.locator('#rows td.worse').first().textContent()), 'in the table');
  await done(page);
});

test('names in pictures tell cells apart', async () => {
  const page = await open(url('two.html'), { viewport: { width: 1440, height: 900 } });
  const names = await page.$$eval('.forest.broad .k > text:first-of-type', (list) => list.map((t) => t.textContent));
  equal(new Set(names).size, names.length, `names: ${names.join()}`);
  ok(names.includes('fast 64 1') && !names.some((name) => name.includes('…')), names.join());
  ok((await page.locator('#first-picture .note').first().textContent()).includes('variant, size, threads'), 'what they are');
  await page.goto(url('failed.html'));
  const strip = await page.locator('figure[data-kind=strip] svg').first().textContent();
  ok(strip.includes('broken') && !strip.includes('…') && !strip.includes('tag'), strip);
  await page.goto(url('run.html'));
  ok(await page.locator('#plot-ratio svg:not(.narrow) g.t', { hasText: 'fast' }).count(), 'a line is named at its end');
  await done(page);
});

test('figures of profiles have units', async () => {
  const page = await open(url('profiles.html'));
  const heads = await page.$$eval('table.why thead th', (list) => list.map((th) => th.textContent));
  ok(/^Base \((ns|µs|ms|s)\)$/.test(heads[1]) && /^New \((ns|µs|ms|s)\)$/.test(heads[2]), heads.join());
  const lead = await page.locator('.lead.main').textContent();
  ok(/about the same CPU time|[\d.]+× (less|more) CPU time/.test(lead) && !/: 1× /.test(lead), lead);
  await done(page);
});

test('the first screen names the winner, the baseline, the interval, and shows the same', async () => {
  const page = await open(url('run.html'), { viewport: { width: 1440, height: 900 } });
  const lead = await page.locator('.lead.main').textContent();
  ok(/fast against base \(the baseline\)/.test(lead), lead);
  ok(/\[[\d.]+, [\d.]+\]/.test(lead), `an interval: ${lead}`);
  ok(/it depends, ▲.better in \d+ and ▼.worse in \d+ of \d+ cells; on average /.test(lead), `both ways: ${lead}`);
  ok(/95 % confidence/.test(await page.locator('.first').textContent()), 'how sure');
  ok(/Measured on \S+/.test(await page.locator('.first').textContent()), 'on which machine');
  ok(/assay explain --in \d+ 'variant=base' 'variant=fast'/.test(await page.locator('.first .next').textContent()), 'what finds the reasons');
  const picture = await page.locator('.first figure svg.broad').boundingBox();
  ok(picture.y + picture.height <= 900, `the picture ends at ${picture.y + picture.height}`);
  ok(await count(page, '.first figure .mb'), "the crossover's interval");
  await page.goto(url('two.html'));
  ok(/no difference/.test(await page.locator('.lead.main').textContent()), 'no difference');
  ok(/The limit is at 95 % confidence/.test(await page.locator('.first').textContent()), 'how sure of no difference');
  ok(await page.locator('.forest.broad').textContent().then((text) => text.includes('same as 1 (demo)')), 'what 1 is');
  const lines = await page.locator('.forest.broad .k .i').count();
  equal(await page.locator('.forest.broad .k .e').count(), lines, 'each ratio has its interval');
  await done(page);
});

test('failed runs are told at the top, with a row for each cell', async () => {
  const page = await open(url('failed.html'));
  const banner = await page.locator('.banner.lost').textContent();
  ok(/\d+ of \d+ runs failed, in \d+ of \d+ cells/.test(banner), banner);
  const rows = await page.locator('.failures tbody').textContent();
  ok(/exit code 3/.test(rows) && rows.includes('<b>no such file</b>'), rows);
  ok(await count(page, '#rows tr.lost') >= 2, 'rows of cells without values');
  ok(/runs failed/.test(await page.locator('#rows .caveat').first().textContent()), 'a caveat of a flaky cell');
  ok(/runs failed/.test(await page.locator('.forest.broad').textContent()), 'in the picture');
  ok(!/runs failed/.test(await page.locator('#first-picture figcaption').textContent()), 'one row is not all');
  await page.locator('#rows .open').last().click();
  await page.waitForSelector('tr.raw .dots');
  await page.goto(url('allfailed.html'));
  ok(/All \d+ runs failed/.test(await page.locator('.banner.lost').textContent()), 'nothing but failures');
  ok(/no verdict/.test(await page.locator('#verdict').textContent()), 'no verdict');
  equal((await violations(page)).join('\n'), '', 'violations');
  await page.goto(url('stopped.html'));
  ok(/was stopped before its end/.test(await page.locator('.banner').first().textContent()), 'that it was stopped');
  await done(page);
});

test('a long name and a long value are shortened, with the whole on demand', async () => {
  const page = await open(url('long.html'), { viewport: { width: 1440, height: 900 } });
  const cell = page.locator('#rows th[scope=row] details.long').first();
  ok((await cell.locator('summary').boundingBox()).height < 200, 'a short summary');
  ok((await cell.textContent()).length > 5000, 'the whole');
  const captions = await page.$$eval('figcaption', (list) => list.map((caption) => caption.innerText.length));
  ok(Math.max(...captions) < 140, `captions of ${captions} characters`);
  await page.evaluate(() => addEventListener('beforeprint', () => {
    window.printed = [...document.querySelectorAll('#rows details.long')].filter((d) => d.open).length;
  }));
  await page.pdf();
  equal(await page.evaluate(() => window.printed), 0, 'long values on paper');
  await done(page);
});

test('a point tells its figures on hover and on focus', async () => {
  const page = await open(url('run.html'));
  const svg = page.locator('#plot-curve svg:not(.narrow)');
  await svg.focus();
  const first = await page.locator('#plot-curve .detail').textContent();
  ok(/size 64: .*\[/.test(first), first);
  await page.keyboard.press('ArrowRight');
  ok(await page.locator('#plot-curve .detail').textContent() !== first, 'the next point');
  await svg.locator('.p path').last().hover();
  ok(/MB\/s/.test(await page.locator('#plot-curve .detail').textContent()), 'a value with its unit');
  await done(page);
});

test('the address shows the same again', async () => {
  const page = await open(url('run.html'));
  await page.fill('#filter', 'size=64');
  await page.locator('#rows thead th').nth(5).locator('button').click();
  await page.locator('#rows > tbody > tr:not([hidden]) .open').first().click();
  await page.waitForSelector('tr.raw');
  const rows = () => page.$$eval('#rows > tbody > tr:not([hidden])', (list) => list.map((r) => r.cells[0].textContent).join());
  const before = await rows();
  const again = await open(page.url());
  await again.waitForSelector('tr.raw');
  equal(await again.$$eval('#rows > tbody > tr:not([hidden])', (list) => list.map((r) => r.cells[0].textContent).join()), before, 'rows');
  equal(await again.locator('#filter').inputValue(), 'size=64', 'the filter');
  await done(again);
  await done(page);
  const points = await open(url('run.html'));
  await points.locator('#plot-strip').scrollIntoViewIfNeeded();
  await points.locator('#plot-curve svg:not(.narrow) .p.s1 path').nth(2).click();
  const told = await points.locator('#plot-curve .detail').textContent();
  await points.locator('#distributions summary').click();
  await until(points, () => location.hash.includes('sections='));
  await points.locator('nav a', { hasText: 'Plots' }).click();
  await until(points, () => location.hash.includes('to=plots'));
  const same = await open(points.url());
  equal(await same.locator('#plot-curve .detail').textContent(), told, 'the point');
  equal(await same.locator('#plot-curve .here').count(), 1, 'it is marked');
  equal(await same.locator('#distributions').getAttribute('open'), '', 'the section is open');
  ok(await same.evaluate(() => document.getElementById('plots').getBoundingClientRect().top) < 450, 'at the place');
  await Promise.all([same.waitForEvent('load'), same.evaluate(() => { location.hash = '#?q=size%3D4096'; }).catch(() => {})]);
  await until(same, () => document.getElementById('filter')?.value === 'size=4096');
  await done(same);
  await done(points);
  const drawn = await open(url('profiles.html'));
  await drawn.locator('.flame-tools[data-for=flame-0] [data-act=invert]').check();
  await drawn.locator('.flame-tools[data-for=flame-diff] [data-act=width]').selectOption('new');
  await until(drawn, () => location.hash.includes('show-flame-diff=new'));
  const redrawn = await open(drawn.url());
  await until(redrawn, () => document.querySelector('#flame-0 rect[y="0"] title')?.textContent.startsWith('removed'));
  equal(await redrawn.locator('.flame-tools[data-for=flame-diff] [data-act=width]').inputValue(), 'new', 'the width');
  await done(redrawn);
  await done(drawn);
  const flames = await open(`${url('profiles.html')}#?zoom-flame-0=removed&find-flame-0=removed`);
  await until(flames, () => document.querySelectorAll('#flame-0 .up').length > 0 && document.querySelector('#flame-0 .hit'));
  await done(flames);
});

test('plots that differ in one value are small and side by side', async () => {
  const page = await open(url('run.html'), { viewport: { width: 1440, height: 900 } });
  for (const group of await page.locator('.multiples').all()) {
    const boxes = await group.locator('figure').evaluateAll((list) => list.map((f) => f.getBoundingClientRect()).map((b) => [b.x, b.y, b.width]));
    ok(boxes.length >= 3, `${boxes.length} in a group`);
    equal(boxes[0][1], boxes[1][1], 'the second stands beside the first');
    ok(boxes.every(([, , w]) => w < 720), 'small');
    const scales = await group.locator('figure svg').evaluateAll((list) => list.map((svg) => [...svg.querySelectorAll('g[text-anchor=end] text')].map((t) => t.textContent).join()));
    equal(new Set(scales).size, 1, `scales of a group: ${scales.join(' | ')}`);
  }
  await done(page);
});

// What is wrong with the texts of pictures: too small, cut off at the border, over each other or over data.
const textTroubles = (page) => page.evaluate(() => [...document.querySelectorAll('svg.plot')].filter((svg) => svg.checkVisibility()).flatMap((svg) => {
  const area = svg.getBoundingClientRect();
  const scale = area.width / svg.viewBox.baseVal.width;
  const texts = [...svg.querySelectorAll('text')].map((t) => [t.textContent, t.getBoundingClientRect(), parseFloat(getComputedStyle(t).fontSize) * scale]);
  const where = svg.closest('figure')?.id ?? svg.id;
  const wrong = [];
  texts.forEach(([text, box, size], i) => {
    if (size < 9) wrong.push(`${where}: "${text}" is ${size.toFixed(1)} px`);
    if (box.left < area.left - 1 || box.right > area.right + 1 || box.top < area.top - 1 || box.bottom > area.bottom + 1) wrong.push(`${where}: "${text}" is cut`);
    for (const mark of svg.querySelectorAll('.p path, .k .e, .k .i')) {
      const dot = mark.getBoundingClientRect();
      const [x, y] = [Math.min(box.right, dot.right) - Math.max(box.left, dot.left), Math.min(box.bottom, dot.bottom) - Math.max(box.top, dot.top)];
      if (x > 1 && y > 2) wrong.push(`${where}: "${text}" is over data`);
    }
    for (const [other, beside] of texts.slice(i + 1)) {
      const [x, y] = [Math.min(box.right, beside.right) - Math.max(box.left, beside.left), Math.min(box.bottom, beside.bottom) - Math.max(box.top, beside.top)];
      if (x > 1 && y > 5) wrong.push(`${where}: "${text}" is over "${other}"`);
    }
  });
  return wrong;
}));

test('texts of pictures are large enough, whole and apart at every width', async () => {
  for (const name of ['run.html', 'two.html', 'failed.html', 'long.html', 'time.html', 'evil.html', 'one.html']) {
    const page = await open(url(name));
    await until(page, () => !document.querySelector('.plots figure:not(.drawn)'));
    for (const width of [390, 1440, 1920]) {
      await page.setViewportSize({ width, height: 900 });
      equal((await textTroubles(page)).join('\n'), '', `${name} at ${width}`);
    }
    await done(page);
  }
});

test('on a phone a flame graph has rows to read and to touch', async () => {
  const page = await open(url('profiles.html'), { viewport: { width: 390, height: 844 } });
  await page.locator('#flame-0').scrollIntoViewIfNeeded();
  await until(page, () => document.querySelector('#flame-0').viewBox.baseVal.width < 400);
  const heights = await page.$$eval('#flame-0 rect', (list) => list.map((r) => r.getBoundingClientRect().height));
  ok(Math.min(...heights) >= 14, `rows of ${Math.min(...heights)} px`);
  equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, 'nothing scrolls sideways');
  await done(page);
});

test('a comparison within an experiment is about the two', async () => {
  const page = await open(url('within.html'));
  ok(!/<h3>Answers/.test(await page.content()), 'answers about all variants');
  ok(/fast against base/.test(await page.locator('.lead.main').textContent()), 'the two');
  await done(page);
});

test('light and dark change places', async () => {
  const page = await open(url('run.html'), { colorScheme: 'light' });
  const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await colour();
  await page.click('#theme');
  const dark = await colour();
  ok(light !== dark, `${light} and ${dark}`);
  equal((await violations(page)).join('\n'), '', 'violations');
  await page.click('#theme');
  equal(await colour(), light, 'back again');
  await done(page);
});

test('the verdict says why, first of all', async () => {
  const page = await open(url('why.html'));
  const first = page.locator('#verdict .reasons li').first();
  const text = await first.textContent();
  ok(text.includes('</script>') && text.includes('72 % of the +4.3 ns/op'), text);
  ok(text.includes('called by copy_again'), 'the evidence');
  ok(await page.locator('#verdict .reasons li.unsure').count(), 'a reason that could be chance');
  ok((await page.locator('#verdict').textContent()).includes('1.4× slower'), 'how much, how sure');
  await done(page);
});

test('where the reasons are known they stand with the verdict, else the command that finds them', async () => {
  const page = await open(url('reasons.html'), { viewport: { width: 1440, height: 900 } });
  const lead = await page.locator('.lead.main').first().textContent();
  ok(/^checked against unchecked \(the baseline\), wall: /.test(lead), lead);
  equal(await count(page, '.first .next'), 0, 'commands to find what is known');
  const reason = page.locator('#verdict .reasons li').first();
  ok(/checksum \+/.test(await reason.textContent()), await reason.textContent());
  ok((await reason.boundingBox()).y < 900, 'on the first screen');
  await page.goto(url('run.html'));
  equal(await count(page, '.first .next code'), 1, 'the command');
  await done(page);
});

test('readings over time and the history with its change', async () => {
  for (const name of ['time.html', 'time-again.html']) { // the second was made from the first
    const page = await open(url(name));
    ok(await count(page, 'figure[data-kind=monitor] svg .l'), `${name}: lines of monitors`);
    equal(await page.locator('.first figure').getAttribute('data-kind'), 'history', 'beside the sentence');
    ok((await page.locator('.say').textContent()).includes('those of the same name before it are in the picture'), 'what it is compared with');
    const history = page.locator('figure[data-kind=history]').first();
    ok(await history.locator('svg .p path').count() >= 8, `${name}: experiments`);
    ok(/changed: ×1\.\d/.test(await history.textContent()), `${name}: ${await history.textContent()}`);
    ok(await history.locator('svg .m').count(), `${name}: a line where it changed`);
    await done(page);
  }
});

test('it prints', async () => {
  const page = await open(url('run.html'));
  await page.evaluate(() => addEventListener('beforeprint', () => {
    window.folded = document.querySelectorAll('details:not([open])').length;
  }));
  const pdf = await page.pdf();
  equal(await page.evaluate(() => window.folded), 0, 'what is folded while it prints');
  equal(pdf.subarray(0, 5).toString(), '%PDF-', "the file's beginning");
  ok(!pdf.includes('/Subtype /Image'), 'no pixels, vectors');
  await done(page);
});

test('hostile names do nothing', async () => {
  for (const name of ['evil.html', 'profiles.html', 'two.html']) {
    const page = await open(url(name));
    await page.evaluate(() => { window.evil = () => { window.struck = true; }; });
    for (const graph of await page.locator('svg.flame').all()) await graph.hover();
    equal(await count(page, 'img'), 0, `images in ${name}`);
    equal(await page.evaluate(() => window.struck), undefined, 'what an attack would set');
    ok((await page.locator('body').textContent()).includes('</script>'), 'the name as text');
    await done(page);
  }
});

await import('./table.mjs');
await import('./profiles.mjs');
await import('./serve.mjs');
await main();
