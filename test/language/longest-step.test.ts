/**
 * The orchestrator resolves modules on the thread of its API, and answers requests between two steps. So what counts is the longest
 * step, in time of the processor: other programs do not change it. A collection of garbage may fall into a step, so the better of two
 * runs counts. They run in a process apart, which does nothing else.
 */
import { spawnSync } from 'node:child_process';
import { beforeAll, describe, expect, it } from 'vitest';
import { HOSTILE_MODULES } from '../support/hostile-modules.js';

const DIST = new URL('../../dist/', import.meta.url).href;

/** Milliseconds. Steps take up to 16 on two slow cores; before they were bounded, single ones took 50 to 1,700. */
const LONGEST = 40;

const PROGRAM = `
  import { openSync, readFileSync, readSync, writeSync } from 'node:fs';
  import { parseModule } from '${DIST}src/language/parse-module.js';
  import { compileSteps } from '${DIST}src/language/compile-module.js';
  import { resolveSteps } from '${DIST}src/language/resolve.js';
  import { encodeContent } from '${DIST}daemon/engine/runs/run-contents.js';
  const clock = openSync('/proc/thread-self/schedstat', 'r');
  const read = Buffer.alloc(64);
  const spent = () => (readSync(clock, read, 0, 64, 0), Number.parseInt(read.toString('latin1'), 10) / 1e6);
  let longest = 0;
  const finish = (steps) => {
    for (;;) {
      const before = spent();
      try {
        const { done, value } = steps.next();
        if (done) return value;
      } finally {
        longest = Math.max(longest, spent() - before);
      }
    }
  };
  const agent = { node_id: '0'.repeat(32), name: 'web-1', attributes: { platform: 'linux', init_system: 'systemd' }, tags: {} };
  for (const [name, text] of JSON.parse(readFileSync(0, 'utf8'))) {
    const { definition } = parseModule(text);
    let message = definition === null ? 'it is not valid' : null;
    const times = [];
    for (let round = 0; round < 2 && definition !== null; round += 1) {
      longest = 0;
      try {
        const compiled = finish(compileSteps({ name: 'hostile', definition }));
        const { resources } = finish(resolveSteps({ modules: [compiled], agent, secret: () => null }));
        finish(encodeContent({ resources, removals: [], failures: [], adHoc: new Set(), secrets: {}, verify: [] }));
      } catch (error) {
        message = error.message;
      }
      times.push(longest);
    }
    writeSync(1, JSON.stringify([name, { message, longest: Math.min(...times) }]) + '\\n');
  }
`;

interface Outcome {
  /** Null for a module that is resolved. */
  readonly message: string | null;
  readonly longest: number;
}

const TOO_MUCH = /the loops and filters in it do too much work; make the texts and lists in them shorter/;

/** Refusals that are not about too much work; null for a module that is large and nothing else. */
const OTHER: ReadonlyMap<string, RegExp | null> = new Map([
  ['a long text in a loop', /the text is too long with its expressions filled in \(line 1 of the template "main"\)/],
  ['thousands of missing values', /the agent has no tag "none" \(line 1 of the template "main"\) \(and \d+ more\)$/],
  ['long texts to the limit', null],
  ['patterns of lines in one file', null],
]);

describe.runIf(process.platform === 'linux')('a hostile module', () => {
  const outcomes = new Map<string, Outcome>();
  beforeAll(() => {
    const args = ['--max-old-space-size=1024', '--input-type=module', '-e', PROGRAM];
    const input = JSON.stringify([...HOSTILE_MODULES]);
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { input, encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    for (const line of stdout.split('\n').filter(Boolean)) {
      const [name, outcome] = JSON.parse(line) as [string, Outcome];
      outcomes.set(name, outcome);
    }
  }, 240_000);

  it.each([...HOSTILE_MODULES.keys()])('leaves the API its turn, and ends with a clear message: %s', (name) => {
    const { message, longest } = outcomes.get(name) ?? { message: 'no outcome', longest: Number.POSITIVE_INFINITY };
    const wanted = OTHER.has(name) ? OTHER.get(name) : TOO_MUCH;
    if (wanted == null) expect(message).toBeNull();
    else expect(message).toMatch(wanted);
    expect(longest).toBeLessThan(LONGEST);
  });
});
