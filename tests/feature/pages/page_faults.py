"""A script that lists the faults in a page's layout, contrast and structure, evaluated by the browser."""

from typing import Final

LOOKS: Final = r"""
(() => {
  const wrong = [], wide = document.documentElement.clientWidth;
  const said = e => e.tagName.toLowerCase() + (e.className ? '.' + e.className : '');
  const style = e => getComputedStyle(e);
  const boxed = e => { // inside a box of its own that scrolls, or hidden for all but screen readers
    for (let up = e; up && up !== document.body; up = up.parentElement) {
      const s = style(up);
      const scrolls = up !== e && /auto|scroll/.test(s.overflowX);
      if (scrolls && up.getBoundingClientRect().right <= wide + 1) return true;
      if (s.clipPath !== 'none' || up.classList.contains('skip')) return true;
    }
    return false;
  };
  if (document.documentElement.scrollWidth > wide)
    wrong.push(`the page is ${document.documentElement.scrollWidth} wide`);
  for (const e of document.body.querySelectorAll('*')) {
    const box = e.getBoundingClientRect();
    if (box.width && box.right > wide + 1 && !boxed(e)) wrong.push(`too wide: ${said(e)}`);
  }
  const colour = text => {
    const found = text.match(/[\d.]+/g).map(Number);
    return found.length > 3 && found[3] === 0 ? null : found.slice(0, 3);
  };
  const light = c => c.map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, at) => sum + v * [.2126, .7152, .0722][at], 0);
  const ground = e => {
    for (let up = e; up; up = up.parentElement) {
      const found = colour(style(up).backgroundColor);
      if (found) return found;
    }
    return [255, 255, 255];
  };
  const contrast = (e, of) => {
    const [a, b] = [light(colour(of)), light(ground(e))];
    return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode, range = document.createRange();
    for (const word of node.data.matchAll(/[\p{L}\p{N}]+/gu)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].filter(r => r.width).map(r => Math.round(r.top)));
      if (lines.size > 1) wrong.push(`broken word: ${word[0]}`);
    }
    const e = node.parentElement;
    if (!node.data.trim() || !e.getClientRects().length) continue;
    const found = contrast(e, style(e).color);
    if (found < 4.5) wrong.push(`contrast ${found.toFixed(1)}: ${said(e)} ${node.data.trim().slice(0, 30)}`);
  }
  for (const e of document.querySelectorAll('input')) {
    if (!e.labels.length || !e.labels[0].textContent.trim()) wrong.push(`no label: ${e.name}`);
  }
  for (const e of document.querySelectorAll('a, button, summary')) {
    const box = e.getBoundingClientRect();
    if (box.width && !e.textContent.trim()) wrong.push(`no name: ${said(e)}`);
  }
  for (const [what, count] of [['h1', 1], ['.verdict', 1], ['.verdict .badge', 1], ['main', 1], ['nav', 1]])
    if (document.querySelectorAll(what).length !== count) wrong.push(`not ${count}: ${what}`);
  for (const e of document.querySelectorAll('.badge'))
    if (!e.textContent.trim()) wrong.push('a state without a word');
  if (!document.title.trim()) wrong.push('no title');
  const ours = e => e.getAttribute('src') === '/debug/live.js';
  if (![...document.scripts].every(ours)) wrong.push('a script');
  const sheets = [...document.querySelectorAll('style')].some(e => /url\(|@import/.test(e.textContent));
  const others = [...document.querySelectorAll('[src], link')].filter(e => !ours(e));
  if (sheets || others.length) wrong.push('something from elsewhere');
  if (!style(document.body).fontFamily.includes('system-ui')) wrong.push('no style');
  const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
  if (new Set(ids).size !== ids.length) wrong.push('one id twice');
  return [...new Set(wrong)];
})()
"""
FOCUSED: Final = """
(() => {
  const e = document.activeElement, s = getComputedStyle(e);
  return [e.tagName, s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2];
})()
"""
OPENED: Final = "document.querySelectorAll('details').forEach(each => each.open = true)"
