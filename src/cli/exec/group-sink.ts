/** Agents with the same output and the same end together: what is printed when all have ended. */
import { agentName } from '../format.js';
import type { Paint } from '../render/paint.js';
import { styled } from '../view.js';
import { type ExecResult, wordsOfEnd } from './exec-end.js';
import { namesOf, withoutAgent } from './exec-summary.js';
import { KEPT, type KeptOutput } from './kept-output.js';
import { type Outlets, throughSink } from './through-sink.js';

interface Group {
  readonly results: ExecResult[];
  readonly output: KeptOutput;
}

/** Keeps one copy of equal outputs. */
export class OutputGroups {
  private readonly groups = new Map<string, Group>();

  add(result: ExecResult, output: KeptOutput): void {
    const key = JSON.stringify([withoutAgent(wordsOfEnd(result.end), result), output.digest]);
    const group = this.groups.get(key);
    if (group === undefined) this.groups.set(key, { results: [result], output });
    else group.results.push(result);
  }

  /** The largest group first. Resolves when all is out. */
  async print(outlets: Outlets, paints: Readonly<Record<'out' | 'err', Paint>>): Promise<void> {
    const all = [...this.groups.values()].sort((a, b) => b.results.length - a.results.length);
    for (const { results, output } of all) {
      const sorted = results.toSorted((a, b) => (agentName(a.agent) < agentName(b.agent) ? -1 : 1));
      const [first] = sorted;
      if (first === undefined) continue;
      const words = withoutAgent(wordsOfEnd(first.end), first);
      for (const stream of ['out', 'err'] as const) {
        const length = output.length(stream);
        // A head without anything behind it says that there was no output, once.
        if (length === 0 && (stream === 'err' || output.length('err') > 0)) continue;
        const status = words === '' ? [] : [' ', styled('bad', words)];
        const empty = length === 0 ? [' ', styled('dim', '(no output)')] : [];
        const head = paints[stream].line([styled('strong', `${namesOf(sorted)}:`), ...status, ...empty]);
        await written(outlets, stream, `${head}\n`);
        const bytes = output.bytes(stream);
        await new Promise<void>((resolve) => {
          const sink = throughSink(outlets);
          sink.output(stream, bytes, () => void sink.end().then(resolve));
        });
        if (bytes.length > 0 && bytes.at(-1) !== 0x0a) await written(outlets, stream, '\n');
        if (length > KEPT) await written(outlets, 'err', `(cut: ${KEPT} of ${length} bytes)\n`);
      }
    }
  }
}

const written = (outlets: Outlets, stream: 'out' | 'err', text: string): Promise<void> =>
  new Promise((resolve) => outlets[stream].write(text, resolve));
