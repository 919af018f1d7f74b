/** The script of every page: search, colours, the navigation of narrow windows and buttons that copy code. */
import MiniSearch from 'minisearch';
import { find } from './find.js';
import { SEARCH_OPTIONS } from './search-options.js';

const { body, documentElement } = document;
const root = body.dataset.root;

startTheme();
startMenu();
startSearch();
startCopying();

function startTheme() {
  const button = document.querySelector('.theme');
  const next = { undefined: 'dark', dark: 'light', light: undefined };
  const symbols = { undefined: '◐', dark: '☾', light: '☀' };
  const show = () => {
    button.textContent = symbols[documentElement.dataset.theme];
  };
  button.addEventListener('click', () => {
    const theme = next[documentElement.dataset.theme];
    if (theme === undefined) delete documentElement.dataset.theme;
    else documentElement.dataset.theme = theme;
    try {
      if (theme === undefined) localStorage.removeItem('orch-theme');
      else localStorage.setItem('orch-theme', theme);
    } catch {
      // Without storage the choice holds for this page.
    }
    show();
  });
  show();
}

function startMenu() {
  const button = document.querySelector('.menu');
  button.addEventListener('click', () => {
    const isOpen = body.classList.toggle('menu-open');
    button.setAttribute('aria-expanded', String(isOpen));
  });
  const current = document.querySelector('.navigation [aria-current]');
  const navigation = document.querySelector('.navigation');
  if (current !== null) navigation.scrollTop = current.offsetTop - navigation.clientHeight / 2;
}

function startSearch() {
  const field = document.getElementById('search');
  const list = document.getElementById('results');
  let index = null;
  let selected = -1;

  const load = () =>
    new Promise((resolve, reject) => {
      if (index !== null) return resolve(index);
      // A script, because pages from file:// cannot fetch other files.
      const script = document.createElement('script');
      script.src = `${root}assets/search-index.js`;
      script.onload = () => {
        index ??= MiniSearch.loadJS(window.orchSearchIndex, SEARCH_OPTIONS);
        resolve(index);
      };
      script.onerror = () => reject(new Error('the search index is missing'));
      document.head.append(script);
    });

  const close = () => {
    list.hidden = true;
    selected = -1;
    field.setAttribute('aria-expanded', 'false');
  };

  const show = async () => {
    const text = field.value.trim();
    if (text === '') return close();
    const found = find(await load(), text, 12);
    // The field may have changed while the index was loaded.
    if (field.value.trim() !== text) return;
    selected = -1;
    list.replaceChildren(...(found.length === 0 ? [emptyItem(text)] : found.map(resultItem)));
    list.hidden = false;
    field.setAttribute('aria-expanded', 'true');
  };

  const select = (step) => {
    const items = [...list.querySelectorAll('a')];
    if (items.length === 0) return;
    selected = (selected + step + items.length) % items.length;
    for (const [place, item] of items.entries()) item.classList.toggle('selected', place === selected);
    items[selected].scrollIntoView({ block: 'nearest' });
  };

  field.addEventListener('focus', () => load().catch(() => undefined));
  field.addEventListener('input', () => show().catch((error) => list.replaceChildren(emptyItem(error.message))));
  field.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      select(event.key === 'ArrowDown' ? 1 : -1);
    } else if (event.key === 'Enter') {
      const items = list.querySelectorAll('a');
      (items[selected] ?? items[0])?.click();
    } else if (event.key === 'Escape') {
      close();
      field.blur();
    }
  });
  list.addEventListener('click', close);
  document.addEventListener('click', (event) => {
    if (!event.target.closest('.search')) close();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.target.closest('input, textarea')) return;
    event.preventDefault();
    field.focus();
  });
}

/** Gives each block of code a button, which copies the commands of a session in a terminal without their output. */
function startCopying() {
  for (const block of document.querySelectorAll('main pre')) {
    const code = block.querySelector('code');
    if (code === null) continue;
    const commands = [...code.querySelectorAll('.command')].map(({ textContent }) => textContent);
    const text = commands.length === 0 ? code.textContent.replace(/\n$/, '') : commands.join('\n');
    const button = element('button', 'Copy');
    button.className = 'copy';
    button.type = 'button';
    button.addEventListener('click', async () => {
      const isCopied = await copied(text);
      if (!isCopied) getSelection().selectAllChildren(code);
      button.textContent = isCopied ? 'Copied' : 'Press Ctrl+C';
      setTimeout(() => {
        button.textContent = 'Copy';
      }, 2_000);
    });
    const around = element('div', '');
    around.className = 'code';
    block.replaceWith(around);
    around.append(block, button);
  }
}

/** Copies a text. Returns false where the browser allows it to no page, such as one from HTTP. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

function resultItem({ id, title, heading, excerpt }) {
  const link = document.createElement('a');
  link.href = root + id;
  link.append(element('b', heading === '' ? title : `${title} › ${heading}`), element('span', excerpt));
  const item = element('li', '');
  item.setAttribute('role', 'option');
  item.append(link);
  return item;
}

const emptyItem = (text) => element('li', `Nothing found for “${text}”`);

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}
