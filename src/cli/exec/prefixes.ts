/** The names of agents in front of their lines: as wide as the longest, each in a colour. */

import type { Agent } from '../../contract/agents.js';
import type { OutputStream } from '../../terminal/frames.js';
import { agentName } from '../format.js';
import { loadPaint } from '../render/paint.js';
import { sanitize } from '../render/sanitize.js';
import { cutToWidth, widthOf } from '../render/width.js';
import { type Style, styled } from '../view.js';

const COLORS: readonly Style[] = ['accent', 'good', 'warn', 'strong'];
/** A longer name is cut. */
const WIDEST = 32;

export type PrefixOf = (agent: Agent, stream: OutputStream) => string;

/** @param color whether each stream gets colours */
export async function prefixesFor(
  agents: readonly Agent[],
  color: Readonly<Record<OutputStream, boolean>>,
): Promise<PrefixOf> {
  const paints = { out: await loadPaint(color.out), err: await loadPaint(color.err) };
  const names = new Map(agents.map((agent) => [agent, cutToWidth(sanitize(agentName(agent)), WIDEST)]));
  const styles = new Map(agents.map((agent, index) => [agent, COLORS[index % COLORS.length] ?? 'accent']));
  const width = [...names.values()].reduce((most, name) => Math.max(most, widthOf(name)), 0);
  return (agent, stream) => {
    const name = names.get(agent) ?? '';
    const padding = ' '.repeat(width - widthOf(name));
    return `${paints[stream].span(styled(styles.get(agent) ?? 'accent', name))}${padding} | `;
  };
}
