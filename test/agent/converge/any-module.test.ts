/** Properties of every module on every machine: plans tell the truth, applies converge, triggers are not lost, removals undo. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { apply, drift, type Outcome, plan } from '../../../src/agent/converge.js';
import { Journal } from '../../../src/agent/journal.js';
import { parseModule } from '../../../src/language/parse-module.js';
import { resolve } from '../../../src/language/resolve.js';
import type { ModuleDefinition } from '../../../src/language/schema.js';
import type { Removal } from '../../../src/resources/desired.js';
import type { RunContent } from '../../../src/wire/parts.js';
import { clock, place } from '../../support/agent.js';
import { drawn } from '../../support/exhaustive.js';
import { anyMachine, anyModule, FakeMachine, type FakeMachineOptions, orderedModule } from '../../support/machine.js';

/** The content that an agent gets for a module; null when the module is refused. */
function contentOf(module: ModuleDefinition, value = 'a value'): RunContent | null {
  const { definition } = parseModule(stringify(module));
  if (definition === null) return null;
  const agent = { node_id: '0'.repeat(32), name: 'web-01', attributes: { platform: 'linux' }, tags: {} };
  const secret = () => ({ value, tag: '1a2b' });
  const { resources } = resolve({ modules: [{ name: 'm', definition }], agent, secret });
  return { resources, removals: [] };
}

/** Journals of the case that is looked at. */
const open: Journal[] = [];

const closeAll = (): void => {
  for (const journal of open.splice(0)) journal.close();
};

/** A machine with the agent's journal on it, and all that its runs have shown. */
class Managed {
  readonly machine: FakeMachine;
  readonly journal: Journal;
  readonly shown: unknown[] = [];
  private count = 0;

  constructor(options: FakeMachineOptions) {
    this.machine = new FakeMachine(options);
    this.journal = new Journal(place());
    open.push(this.journal);
  }

  async apply(content: RunContent): Promise<Outcome> {
    this.count += 1;
    return this.keep(
      await apply(content, this.machine, {
        clock,
        ledger: this.journal,
        runId: `OP${this.count}`,
        intend: (_intents, precautions) => {
          this.journal.recordPrecautions(precautions);
          this.journal.sync();
        },
        onResults: (_items, notes) => {
          this.journal.recordNotes(notes);
          this.journal.sync();
        },
      }),
    );
  }

  plan = async (content: RunContent) => this.keep(await plan(content, this.machine, { clock, ledger: this.journal }));
  drift = async (content: RunContent) => this.keep(await drift(content, this.machine, { clock, ledger: this.journal }));

  private keep<T extends Outcome>(outcome: T): T {
    this.shown.push(outcome);
    return outcome;
  }
}

/** `index: action status`, for those that are not as they should be. */
const toDo = ({ results }: Outcome): readonly string[] =>
  [...results]
    .sort((a, b) => a.index - b.index)
    .filter(({ result }) => result.status !== 'unchanged')
    .map(({ index, result }) => `${index}: ${result.action} ${result.identity}`);

const statusOf = (outcome: Outcome, index: number) =>
  outcome.results.find((item) => item.index === index)?.result.status ?? 'skipped';

const machine = fc.oneof(anyMachine, fc.constant<FakeMachineOptions>({}));
const scenario = fc.record({ module: anyModule, machine });
/** Nothing in it changes what an earlier part of it was made with. */
const orderly = fc.record({ module: orderedModule, machine });
const runs = { numRuns: drawn(300), plugins: [fc.afterEach(closeAll)] };

/** A directory that is declared behind its file, and made before it because the file waits for something else. */
const LATE_DIRECTORY: ModuleDefinition = {
  name: 'm',
  supports: [{}],
  resources: [
    { id: 'd', resource: { 'directory-unix': { path: '/d' } } },
    { depends_on: ['d'], resource: { 'file-unix': { path: '/a/g' } } },
    { resource: { 'directory-unix': { path: '/a' } } },
  ],
};

describe('any module on any machine', () => {
  it('that is applied without a failure leaves nothing to plan and no drift', async () => {
    let converged = 0;
    await fc.assert(
      fc.asyncProperty(orderly, async ({ module, machine }) => {
        const content = contentOf(module);
        fc.pre(content !== null);
        const managed = new Managed(machine);
        const applied = await managed.apply(content);
        const [planned, drifted] = [await managed.plan(content), await managed.drift(content)];
        for (const index of content.resources.keys()) {
          if (!['changed', 'unchanged'].includes(statusOf(applied, index))) continue;
          expect(statusOf(drifted, index)).toBe('unchanged');
          if (applied.end === 'succeeded') expect(statusOf(planned, index)).toBe('unchanged');
        }
        if (applied.end !== 'succeeded') return;
        converged += 1;
        expect(managed.journal.owed).toEqual([]);
        const before = managed.machine.changes;
        expect(toDo(await managed.apply(content))).toEqual([]);
        expect(managed.machine.changes).toBe(before);
      }),
      runs,
    );
    expect(converged).toBeGreaterThan(0);
  });

  it('is planned as it is applied, and planning changes nothing', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async ({ module, machine }) => {
        const content = contentOf(module);
        fc.pre(content !== null);
        const managed = new Managed(machine);
        const before = JSON.stringify(managed.machine.state);
        const planned = await managed.plan(content);
        expect(JSON.stringify(managed.machine.state)).toBe(before);
        expect(managed.machine.changes).toBe(0);
        const applied = await managed.apply(content);
        // A plan does not foresee that a change frees the number that a later group wants.
        if (applied.end === 'succeeded' && planned.end === 'succeeded') expect(toDo(applied)).toEqual(toDo(planned));
      }),
      runs,
    );
  });

  it('that can be applied comes to the same end through any failures on the way, with every trigger answered', async () => {
    let broken = 0;
    await fc.assert(
      fc.asyncProperty(
        orderly,
        orderedModule,
        fc.array(fc.array(fc.boolean(), { maxLength: 12 }), { minLength: 1, maxLength: 3 }),
        async ({ module, machine }, other, failures) => {
          const [content, earlier] = [contentOf(module), contentOf(other)];
          fc.pre(content !== null && earlier !== null);
          const [smooth, rough] = [new Managed(machine), new Managed(machine)];
          for (const managed of [smooth, rough]) await managed.apply(earlier);
          fc.pre((await smooth.apply(content)).end === 'succeeded');
          for (const failing of failures) {
            const turns = failing[Symbol.iterator]();
            rough.machine.breaks = () => turns.next().value === true;
            if ((await rough.apply(content)).end === 'failed') broken += 1;
          }
          rough.machine.breaks = () => false;
          expect((await rough.apply(content)).end).toBe('succeeded');
          expect(rough.machine.state).toEqual(smooth.machine.state);
          expect(rough.journal.owed).toEqual([]);
          expectCopiesInStep(rough, content);
        },
      ),
      runs,
    );
    expect(broken).toBeGreaterThan(0);
  });

  it('goes again, down to what was there before', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async ({ module, machine }) => {
        const content = contentOf(module);
        fc.pre(content !== null);
        const managed = new Managed(machine);
        const before = new FakeMachine(machine);
        const applied = await managed.apply(content);
        fc.pre(applied.end === 'succeeded');
        const removals = content.resources.map(({ module: of, kind, identity, body }, index): Removal => {
          const existed = applied.results.find((item) => item.index === index)?.existed;
          return { module: of, kind, identity, id: null, name: null, body, origin: existed ? 'adopted' : 'created' };
        });
        const removed = await managed.apply({ resources: [], removals });
        expect(removed.end).toBe('succeeded');
        expect([...managed.machine.files.nodes.keys()].sort()).toEqual([...before.files.nodes.keys()].sort());
        expect([...managed.machine.groups.keys()].sort()).toEqual([...before.groups.keys()].sort());
        expect(managed.journal.owed).toEqual([]);
      }),
      { ...runs, examples: [[{ module: LATE_DIRECTORY, machine: {} }]] },
    );
  });

  it('shows no value of a secret, not even where a script prints it', async () => {
    await fc.assert(
      fc.asyncProperty(
        scenario,
        secretValue,
        fc.array(fc.boolean(), { maxLength: 12 }),
        async (given, value, failing) => {
          const { module, machine } = given;
          const content = contentOf({ ...module, resources: [...(module.resources ?? []), ...TALKATIVE] }, value);
          fc.pre(content !== null);
          const managed = new Managed(machine);
          const turns = failing[Symbol.iterator]();
          managed.machine.breaks = () => turns.next().value === true;
          for (const run of [managed.plan, managed.apply, managed.plan, managed.drift])
            await run.call(managed, content);
          const all = textsIn(managed.shown).join('\0');
          expect(all).not.toContain(value);
          expect(all).toContain('‹secret s #1a2b›');
        },
      ),
      runs,
    );
  });
});

/** One line of signs that stand in no other text of a run. */
const secretValue = fc
  .string({
    unit: fc.constantFrom(...'ABCDEFXYZ', 'Ü', '€', '🔑', '$&', '$1', '"', '\\', '%', '{{'),
    minLength: 6,
    maxLength: 30,
  })
  .filter((text) => /[A-Z]{2}/.test(text));

function textsIn(found: unknown): readonly string[] {
  if (typeof found === 'string') return [found];
  return typeof found === 'object' && found !== null ? Object.values(found).flatMap(textsIn) : [];
}

/** Scripts that print their secret, once when they succeed and once when they fail. */
const TALKATIVE = ['touch /said', 'cp /nowhere /x'].map((last, at) => ({
  id: `says${at}`,
  resource: { script: { program: 'sh', apply: `echo it is ${'$'}{{ secrets.s }} here\n${last}` } },
}));

/** A copy that is made anew when its source changes is that of the source. */
function expectCopiesInStep({ machine }: Managed, { resources }: RunContent): void {
  for (const { identity } of resources.filter(({ triggers }) => triggers?.rerun_on !== undefined)) {
    const source = machine.files.nodes.get(identity === 'copy-of-h' ? '/h' : '/a/g');
    const copy = machine.files.nodes.get(`/${identity}`);
    expect(copy).toMatchObject({ text: source?.type === 'file' ? source.text : null });
  }
}
