/** The help of every command and topic together: `orch help --all`, the reference page and the manual page. */
import { COMMANDS } from '../commands/index.js';
import { loadPaint } from '../render/paint.js';
import { renderView } from '../render/view.js';
import { lines, stackOf, styled, type View } from '../view.js';
import { commandHelp, overview } from './help.js';
import { TOPICS } from './topics.js';

/** As plain text, never cut. */
export async function helpAll(): Promise<string> {
  const rendered = await renderView(await helpAllView(), { paint: await loadPaint(false), wide: true, columns: null });
  return rendered.map((line) => `${line}\n`).join('');
}

/** The overview, then the commands in the order of the index, then the topics. */
export async function helpAllView(): Promise<View> {
  const commands: View[] = [];
  for (const entry of COMMANDS.filter(({ hidden }) => !hidden)) {
    commands.push(lines(styled('accent', `── orch ${entry.path} ──`)), await commandHelp(entry));
  }
  return stackOf([overview(), ...commands, ...TOPICS.map((topic) => topic.view())]);
}
