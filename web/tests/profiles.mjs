// SPDX-License-Identifier: MIT
// Profiles in the report: flame graphs, over time, callers and callees, code.
import fs from 'node:fs';
import vm from 'node:vm';
import { count, done, equal, names, ok, open, test, until, url, violations, widths } from './browser.mjs';

test('a flame graph zooms and comes back', async () => {
  const page = await open(url('profiles.html'));
  await whenOf(page, 'flame-0'); // the graph is drawn from the data when this comes into view
  const text = page.locator('#flame-0 text', { hasText: 'removed' }).first();
  await text.scrollIntoViewIfNeeded();
  const box = await text.boundingBox();
  await page.mouse.click(box.x + 4, box.y + 6);
  await until(page, () => document.querySelectorAll('#flame-0 .up').length > 0);
  const zoomed = await widths(page, 'flame-0');
  equal(Math.max(...zoomed), 1200, 'the widest');
  ok((await names(page, 'flame-0')).every((n) => !n.startsWith('shared')), 'others are gone');
  await page.click('.flame-tools[data-for=flame-0] [data-act=reset]');
  await until(page, () => document.querySelectorAll('#flame-0 .up').length === 0);
  ok((await names(page, 'flame-0')).some((n) => n.startsWith('shared')), 'others are back');
  await done(page);
});

test('a search tells the share that matches', async () => {
  const page = await open(url('profiles.html'));
  const tools = page.locator('.flame-tools[data-for=flame-0]');
  await tools.locator('[data-act=search]').fill('^(removed|shared)$');
  await until(page, () => /matches/.test(document.querySelector('.flame-tools[data-for=flame-0] .match').textContent));
  const share = parseFloat(await tools.locator('.match').textContent());
  ok(share > 50 && share <= 100, `share ${share}`);
  ok(await count(page, '#flame-0 .hit') >= 2, 'frames that are marked');
  await tools.locator('[data-act=search]').fill('(');
  await until(page, () => /not a regular/.test(document.querySelector('.flame-tools[data-for=flame-0] .match').textContent));
  await done(page);
});

test('a flame graph inverts, and shows the order of time', async () => {
  const page = await open(url('profiles.html'));
  const tools = page.locator('.flame-tools[data-for=flame-0]');
  await tools.locator('[data-act=invert]').check();
  await until(page, () => [...document.querySelectorAll('#flame-0 rect')]
    .some((r) => r.getAttribute('y') === '0' && /^removed/.test(r.textContent)));
  await tools.locator('[data-act=invert]').uncheck();
  const merged = await page.$$eval('#flame-0 rect', (l) => l.filter((r) => /^removed/.test(r.textContent)).length);
  await tools.locator('[data-act=order]').check();
  await until(page, (n) => [...document.querySelectorAll('#flame-0 rect')]
    .filter((r) => /^removed/.test(r.textContent)).length > n, merged);
  await done(page);
});

test('the difference keeps the paths of both sides', async () => {
  const page = await open(url('profiles.html'));
  const both = (await names(page, 'flame-diff')).join('\n');
  ok(both.includes('removed'), 'what is gone');
  ok(both.includes('</script>'), 'what is new');
  ok(await count(page, '#flame-diff .fu1, #flame-diff .fu2'), 'red');
  ok(await count(page, '#flame-diff .fd1, #flame-diff .fd2'), 'green');
  ok(/\+ |− /.test(await page.locator('#flame-diff').textContent()), 'a sign besides the colour');
  const tools = page.locator('.flame-tools[data-for=flame-diff]');
  await tools.locator('[data-act=width]').selectOption('new');
  await until(page, () => ![...document.querySelectorAll('#flame-diff rect')].some((r) => /^removed/.test(r.textContent)));
  await tools.locator('[data-act=width]').selectOption('base');
  await until(page, () => [...document.querySelectorAll('#flame-diff rect')].some((r) => /^removed/.test(r.textContent)));
  await done(page);
});

// ---- over time ----

const whenOf = async (page, id) => {
  const box = page.locator(`.when[data-for=${id}]`);
  await box.scrollIntoViewIfNeeded();
  await until(page, (name) => document.querySelector(`.when[data-for=${name}]`).dataset.ready === '1', id);
  return box;
};

test('a stretch of time has its own flame graph, and its difference to the rest', async () => {
  const page = await open(url('source.html'));
  const box = await whenOf(page, 'flame-0');
  const heat = box.locator('svg.heat');
  const cells = await heat.locator('rect').evaluateAll((list) => list.map((r) => ['x', 'y', 'width', 'height'].map((k) => Number(r.getAttribute(k)))));
  ok(cells.length > 50, `${cells.length} cells`);
  ok(cells.every(([x, y, w, h]) => x >= 0 && x + w <= 1200.5 && y >= 0 && y + h <= 120.5), 'cells within the picture');
  // phases.c does one thing in its first half and another in its second.
  const area = await heat.boundingBox();
  const right = Math.max(...cells.map(([x, , w]) => x + w)) * (area.width / 1200);
  await page.mouse.move(area.x + 2, area.y + 3);
  await page.mouse.down();
  await page.mouse.move(area.x + right * 0.35, area.y + 50, { steps: 4 });
  await page.mouse.up();
  await until(page, () => /samples\./.test(document.querySelector('.when[data-for=flame-0] .detail').textContent));
  const words = await box.locator('.detail').textContent();
  const [, some, all] = /: ([\d,]+) of ([\d,]+) samples/.exec(words).map((n) => Number(String(n).replace(/,/g, '')));
  ok(some > 10 && some < all / 2, words);
  const only = await names(page, 'flame-0');
  ok(only.some((n) => n.startsWith('early')) && !only.some((n) => n.startsWith('late')), `only the early: ${only}`);
  ok(page.url().includes('range-flame-0'), 'the address has it');
  await box.locator('input[value=rest]').check();
  await until(page, () => document.querySelectorAll('#flame-0 .fu1, #flame-0 .fu2').length > 0);
  const coloured = (which) => page.$$eval(`#flame-0 ${which}1 title, #flame-0 ${which}2 title`, (list) => list.map((t) => t.textContent.split(':')[0]));
  ok((await coloured('.fu')).includes('early'), 'what is more in this time');
  ok((await coloured('.fd')).includes('late'), 'what is less');
  const grey = (await coloured('.fu')).concat(await coloured('.fd'));
  ok(!grey.includes('always'), 'what is the same all the time is grey');
  const again = await open(page.url());
  await until(again, () => document.querySelectorAll('#flame-0 .fu1, #flame-0 .fu2').length > 0);
  await done(again);
  await box.locator('button', { hasText: 'The whole time' }).click();
  await until(page, () => document.querySelectorAll('#flame-0 .fu1, #flame-0 .fu2').length === 0);
  ok((await names(page, 'flame-0')).some((n) => n.startsWith('late')), 'everything is back');
  equal((await violations(page)).join('\n'), '', 'violations');
  await done(page);
});

test('the time map works with the keyboard', async () => {
  const page = await open(url('source.html'));
  const box = await whenOf(page, 'flame-0');
  await box.locator('svg.heat').focus();
  for (let i = 0; i < 12; i++) await page.keyboard.press('Shift+ArrowRight');
  await page.keyboard.press('Enter');
  await until(page, () => /samples\./.test(document.querySelector('.when[data-for=flame-0] .detail').textContent));
  await page.keyboard.press('Escape');
  await until(page, () => document.querySelector('.when[data-for=flame-0] .detail').textContent === '');
  await done(page);
});

test('samples without a difference seldom show one', async () => {
  const context = vm.createContext({});
  vm.runInContext(`${fs.readFileSync(new URL('../profile.js', import.meta.url), 'utf8')}; this.judgeRange = judgeRange;`, context);
  let seed = 1;
  const luck = () => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed / 2147483648; };
  const count = (turns, stackOf, turn = 10, length = 600) => {
    let wrong = 0;
    for (let k = 0; k < turns; k++) {
      const stacks = [];
      let phase = 0;
      for (let i = 0; i < 2400; i++) {
        if (luck() < 1 / turn) phase = luck();
        stacks.push(stackOf(phase));
      }
      const from = Math.floor(luck() * (2400 - length));
      const { marks, tested } = context.judgeRange(stacks, stacks.map((_, i) => i >= from && i < from + length), 9);
      ok(tested >= 4, `${tested} functions were tested`);
      wrong += marks.some((mark) => mark !== 0);
    }
    return wrong / turns;
  };
  const free = count(100, () => [0, 1 + Math.floor(luck() * 8)]);
  ok(free < 0.1, `independent samples: ${free} of the ranges show a difference`);
  const phases = count(100, (phase) => [0, 1 + Math.floor(((phase + luck() * 0.2) % 1) * 8)]);
  ok(phases < 0.1, `with turns of about ten samples: ${phases}`);
  const few = count(100, (phase) => [0, 1 + Math.floor(phase * 8)], 100, 120);
  ok(few < 0.1, `few samples, which are one turn of about a hundred or two: ${few}`);
  // One phase after another is what is looked for.
  const halves = Array.from({ length: 2400 }, (_, i) => [0, i < 1200 ? 1 : 2, luck() < 0.3 ? 3 : 4]);
  equal([...context.judgeRange(halves, halves.map((_, i) => i < 840), 5).marks].join(), '0,1,-1,0,0', 'marks of two phases');
  // And one that is there is found.
  const stacks = Array.from({ length: 600 }, (_, i) => [0, luck() < (i < 200 ? 0.5 : 0.2) ? 1 : 2]);
  const { marks } = context.judgeRange(stacks, stacks.map((_, i) => i < 200), 3);
  equal([...marks].join(), '0,1,-1', 'marks of a true difference');
});

test('callers and callees of a function, over all stacks', async () => {
  const page = await open(url('source.html'));
  await page.locator('a[data-n][href="#flame-0"]', { hasText: 'always' }).first().click();
  await until(page, () => document.querySelector('#flame-0 ~ .detail').textContent.startsWith('always'));
  await page.click('.flame-tools[data-for=flame-0] [data-act=around]');
  const titles = (which) => page.$$eval(`.sandwich .${which} rect title`, (list) => list.map((t) => t.textContent.split(':')[0]));
  await page.waitForSelector('.sandwich .callers rect');
  const callers = await titles('callers');
  ok(['always', 'early', 'late', 'main'].every((n) => callers.includes(n)), `callers: ${callers}`);
  const share = async (which) => parseFloat((await page.$$eval(`.sandwich .${which} rect title`, (list) => list.map((t) => t.textContent)))
    .find((text) => text.startsWith('always')).split(': ')[1]);
  equal(await share('callers'), await share('callees'), 'both have all of it');
  // The callers stand on the function: it is at the bottom, over the whole width.
  const boxes = await page.$$eval('.sandwich .callers rect', (list) => list.map((r) => [r.textContent.split(':')[0], Number(r.getAttribute('y')), Number(r.getAttribute('width'))]));
  const self = boxes.find(([n, , w]) => n === 'always' && w >= 1199);
  ok(self && boxes.every(([, y]) => y <= self[1]), 'the function is below its callers');
  ok(page.url().includes('around-flame-0=always'), 'the address has it');
  await done(page);
});

test('a function that is clicked shows its source and its instructions', async () => {
  const page = await open(url('source.html'));
  await page.locator('a[data-n][href="#flame-0"]', { hasText: 'always' }).first().click();
  await page.waitForSelector('.code table');
  const text = await page.locator('.code').textContent();
  ok(text.includes('phases.c') && text.includes('sink += n'), text.slice(0, 300));
  ok(await count(page, '.code tr.hot'), 'hot lines');
  const shares = await page.$$eval('.code .scroll > table td:nth-child(2)', (list) => list.map((c) => parseFloat(c.textContent || '0')));
  const sum = shares.reduce((a, b) => a + b, 0);
  ok(sum > 95 && sum < 101, `instructions have ${sum} % of the samples`);
  await done(page);
});

test('threads have tracks where waits were recorded', async () => {
  const page = await open(url('source.html'));
  const box = await whenOf(page, 'flame-0');
  if (!await box.locator('svg.tracks').count()) return; // off-CPU time cannot be recorded everywhere
  const waits = await box.locator('svg.tracks .wait').evaluateAll((list) => list.map((r) => [Number(r.getAttribute('x')), Number(r.getAttribute('width')), r.textContent]));
  ok(waits.length >= 5, `${waits.length} waits`);
  ok(waits.every(([x, w]) => x >= 150 && x + w <= 1200.5), 'waits within the picture');
  ok(waits.some(([, , text]) => /waited .* in .*nanosleep/.test(text)), `sleeps: ${waits.slice(0, 3).map((w) => w[2])}`);
  await done(page);
});

test('a function leads to its frame', async () => {
  const page = await open(url('profiles.html'));
  await page.locator('a[data-n][href="#flame-0"]', { hasText: 'removed' }).first().click();
  await until(page, () => document.activeElement && document.activeElement.id === 'flame-0');
  ok((await page.locator('#flame-0 ~ .detail').first().textContent()).startsWith('removed'), 'what is said');
  await done(page);
});

test('the keyboard is enough', async () => {
  const page = await open(url('profiles.html'));
  await page.locator('#flame-0').focus();
  await page.waitForSelector('#flame-0 ~ .detail', { state: 'attached' });
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown']) await page.keyboard.press(key);
  await until(page, () => document.querySelector('#flame-0 .here'));
  await page.keyboard.press('Enter');
  await until(page, () => document.querySelector('#flame-0 .up'));
  await page.keyboard.press('Escape');
  await until(page, () => !document.querySelector('#flame-0 .up'));
  await done(page);
});

test('a row of the difference leads to its frame', async () => {
  const page = await open(url('profiles.html'));
  await page.locator('.why a', { hasText: 'removed' }).first().click();
  await until(page, () => document.activeElement && document.activeElement.id === 'flame-diff');
  ok((await page.locator('#flame-diff ~ .detail').first().textContent()).startsWith('removed'), 'what is said');
  await done(page);
});

test('a row that the table calls chance is grey in the picture', async () => {
  const page = await open(url('profiles.html'));
  const unsure = await page.$$eval('.why tr.unsure th', (list) => list.map((t) => t.textContent));
  const sure = await page.$$eval('.why tbody tr:not(.unsure) th', (list) => list.map((t) => t.textContent));
  ok(sure.includes('removed'), `sure of ${sure}`);
  await page.locator('#flame-diff').hover();
  await page.waitForSelector('#flame-diff ~ .detail', { state: 'attached' });
  const coloured = await page.$$eval('#flame-diff .fu1 title, #flame-diff .fu2 title, #flame-diff .fd1 title, #flame-diff .fd2 title',
    (list) => list.map((t) => t.textContent.split(':')[0]));
  ok(coloured.includes('removed'), `coloured: ${coloured}`);
  // Leaves cost what they cost themselves: there the two must agree.
  for (const name of unsure.filter((n) => n === 'shared')) ok(!coloured.includes(name), `${name} is coloured`);
  await done(page);
});
