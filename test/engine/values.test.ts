/** Value sets: which values agents get, whom a change reaches, and what the orchestrator does by itself about it. */

import { describe, expect, it } from 'vitest';
import { ALL_RIGHTS, Rights } from '../../daemon/core/rights.js';
import { setTag } from '../../daemon/fleet/tag-store.js';
import { OPEN } from '../../src/language/parse-expression.js';
import { rejection } from '../support/database.js';
import { ALICE, type Bench, oneSecret, openBench, type ScriptedAgent } from '../support/engine.js';

const MODULE = [
  'name: web',
  'supports: [{platform: linux}]',
  'inputs:',
  '  workers: {type: integer, default: 4}',
  '  key: {type: string, secret: true, optional: true}',
  'resources:',
  `  - file-unix: {path: /workers, content: "${OPEN} inputs.workers }} ${OPEN} shared.domain | default: 'lan' }}"}`,
  '  - if: inputs.key != nil',
  `    file-unix: {path: /key, content: "${OPEN} inputs.key }}"}`,
  '',
].join('\n');

const upload = (bench: Bench, name: string, ...entries: readonly string[]) =>
  bench.engine.values.upload({ name, content: `values:\n${entries.map((one) => `  - ${one}\n`).join('')}` }, ALICE);

const contentOf = (agent: ScriptedAgent, path = '/workers') => JSON.parse(agent.machine.get(path) ?? '{}').content;

const standingOf = async (bench: Bench, { nodeId }: ScriptedAgent) => {
  await bench.rest();
  return bench.engine.standings.of(nodeId);
};

/** Lets automatic applies begin, which wait for some seconds after the one before, and end. */
async function calm(bench: Bench): Promise<void> {
  bench.clock.advance(10_000);
  await bench.rest();
  await bench.settle();
  await bench.rest();
}

interface Assigned {
  readonly bench: Bench;
  readonly agent: ScriptedAgent;
  readonly other: ScriptedAgent;
}

/** Two agents with the module, of which the first one has the tag env=prod. */
async function assigned(mode: 'manual' | 'enforce' = 'manual', bench?: Bench): Promise<Assigned> {
  const opened = bench ?? (await openBench());
  await opened.engine.modules.upload({ name: 'web', content: MODULE }, ALICE);
  const [agent, other] = [await opened.agent('a'), await opened.agent('b')];
  await setTag(opened.db, agent.nodeId, 'env', 'prod');
  for (const one of [agent, other]) await opened.tell('agent.approved', one);
  const all = { name: 'all', modules: ['web'], selector: 'platform=linux', description: null, mode };
  await opened.engine.assignments.create(all, ALICE);
  return { bench: opened, agent, other };
}

describe('values of inputs', () => {
  it('are those of the most specific clause, of an assignment above value sets, else the default', async () => {
    const { bench, agent, other } = await assigned();
    await bench.apply(agent, []);
    expect(contentOf(agent)).toBe('4 lan');
    await upload(
      bench,
      'all',
      '{when: {}, shared: {domain: a.net}, set: {web: {workers: 5}}}',
      '{when: {tag.env: prod}, set: {web: {workers: 6}}}',
    );
    await bench.apply(agent, []);
    await bench.apply(other, []);
    expect([contentOf(agent), contentOf(other)]).toEqual(['6 a.net', '5 a.net']);
    await upload(bench, 'one', '{when: {agent: web-a}, set: {web: {workers: 7}}}');
    await bench.apply(agent, []);
    expect(contentOf(agent)).toBe('7 a.net');
    await bench.engine.assignments.update(
      'all',
      { modules: null, selector: null, description: null, values: { web: { workers: 8 } } },
      ALICE,
    );
    await bench.apply(agent, []);
    expect(contentOf(agent)).toBe('8 a.net');
  });

  it('make an agent be behind, and with enforce reach it at once', async () => {
    const { bench, agent, other } = await assigned('enforce');
    await calm(bench);
    expect([contentOf(agent), contentOf(other)]).toEqual(['4 lan', '4 lan']);
    const { agents } = await upload(bench, 'prod', '{when: {tag.env: prod}, set: {web: {workers: 16}}}');
    expect(agents).toMatchObject([
      { name: 'web-a', mode: 'enforce', on_trial: false, modules: ['web'], problem: null },
    ]);
    await calm(bench);
    expect([contentOf(agent), contentOf(other)]).toEqual(['16 lan', '4 lan']);
    await bench.engine.values.remove('prod', ALICE);
    await calm(bench);
    expect(contentOf(agent)).toBe('4 lan');
  });

  it('that are wrong leave the agent as it is, and tell why', async () => {
    const { bench, agent } = await assigned();
    await bench.apply(agent, []);
    const twice = ['{when: {}, set: {web: {workers: 1}}}', '{when: {}, set: {web: {workers: 2}}}'];
    const { agents } = await upload(bench, 'tied', ...twice);
    expect(agents.map(({ name, problem }) => [name, problem?.includes('equal weight')])).toEqual([
      ['web-a', true],
      ['web-b', true],
    ]);
    const { standing, standing_reason } = await standingOf(bench, agent);
    expect(standing).toBe('behind');
    expect(standing_reason).toContain('tied.values.yaml:2');
    expect((await rejection(bench.apply(agent, []))).code).toBe('input_invalid');
    expect(contentOf(agent)).toBe('4 lan');
  });

  it('that change let automatic applies go on which had stopped', async () => {
    const bench = await openBench({ automation: () => ({ maxConcurrent: 16, maxFailedAgents: 1, maxRepairs: 3 }) });
    const { agent } = await assigned('manual', bench);
    agent.mishaps.set('/workers', 'fail');
    const mode = { modules: null, selector: null, description: null, mode: 'enforce' } as const;
    await bench.engine.assignments.update('all', mode, ALICE);
    for (let round = 0; round < 3; round += 1) await calm(bench);
    expect((await bench.engine.assignments.get('all', ALL_RIGHTS)).stopped_reason).toContain('failed on 1 agents');
    agent.mishaps.clear();
    await upload(bench, 'all', '{when: {}, set: {web: {workers: 5}}}');
    expect((await bench.engine.assignments.get('all', ALL_RIGHTS)).stopped_reason).toBeNull();
    for (let round = 0; round < 3; round += 1) await calm(bench);
    expect(contentOf(agent)).toBe('5 lan');
  });

  it('give secrets, which are masked in what is stored', async () => {
    const bench = await openBench({ secrets: oneSecret('hunter2') });
    const { agent, other } = await assigned('manual', bench);
    await upload(bench, 'keys', '{when: {tag.env: prod}, set: {web: {key: {secret: KEY}}}}');
    const operation = await bench.apply(agent, []);
    await bench.apply(other, []);
    expect([contentOf(agent, '/key'), contentOf(other, '/key')]).toEqual(['hunter2', undefined]);
    expect(JSON.stringify(operation)).not.toContain('hunter2');
    const stored = await bench.db.selectFrom('run_contents').selectAll().execute();
    expect(JSON.stringify(stored)).not.toContain('hunter2');
    expect(JSON.stringify(stored)).toContain('KEY');
    const { code } = await rejection(upload(bench, 'plain', '{when: {}, set: {web: {key: hunter2}}}'));
    expect(code).toBe('invalid_values');
  });

  it('are explained with what they beat', async () => {
    const { bench, agent } = await assigned();
    await upload(
      bench,
      'all',
      '{when: {}, set: {web: {workers: 5}}}',
      '{when: {tag.env: prod}, set: {web: {workers: 6}}}',
    );
    expect(await bench.engine.values.explain(agent.nodeId, null)).toMatchObject([
      {
        module: 'web',
        inputs: [
          {
            name: 'workers',
            value: 6,
            is_default: false,
            candidates: [
              { value: 5, from: 'all.values.yaml:2', when: {}, used: false },
              { value: 6, from: 'all.values.yaml:3', when: { 'tag.env': 'prod' }, used: true },
            ],
            problem: null,
          },
          { name: 'key', value: null, is_default: false, candidates: [], problem: null },
        ],
      },
    ]);
  });

  it('are warned of when a new revision of a module does not take them any longer', async () => {
    const { bench } = await assigned();
    await upload(bench, 'all', '{when: {}, set: {web: {workers: 5}, other: {a: 1}}}');
    const given = { modules: null, selector: null, description: null, values: { web: { workers: 6 } } };
    await bench.engine.assignments.update('all', given, ALICE);
    const content = MODULE.replaceAll('workers', 'threads');
    const { warnings } = await bench.engine.modules.upload({ name: 'web', content }, ALICE);
    expect(warnings.map(({ message }) => message)).toEqual([
      'all.values.yaml:2 does not fit: module "web" has no input "workers"',
      'assignment all does not fit: module "web" has no input "workers"',
    ]);
    expect((await bench.engine.modules.upload({ name: 'web', content: MODULE }, ALICE)).warnings).toEqual([]);
  });

  it('let no automatic applies count anew on machines of others when an operator with grants changes theirs', async () => {
    const { bench } = await assigned();
    const countedFrom = async () => {
      const rows = await bench.db.selectFrom('assignments').select('counted_from').execute();
      return rows.map(({ counted_from }) => counted_from);
    };
    const before = await countedFrom();
    const content = 'values:\n  - {when: {tag.env: prod}, set: {web: {workers: 6}}}\n';
    const rights = new Rights('operator', [{ rights: ['operator'], selector: 'env=prod' }]);
    await bench.engine.values.upload({ name: 'hers', content }, { ...ALICE, rights });
    expect(await countedFrom()).toEqual(before);
    await bench.engine.values.remove('hers', ALICE);
    expect(await countedFrom()).not.toEqual(before);
  });

  it('are warned of when people take the name of a new set for that of another', async () => {
    const bench = await openBench();
    await bench.upload('web', {});
    const entry = '{when: {}, shared: {domain: lan}}';
    await upload(bench, 'prod', entry);
    const looksLike = [{ line: 1, message: 'the name looks like that of the value set "prod"' }];
    const content = `values:\n  - ${entry}\n`;
    expect((await bench.engine.values.preview('Prod', content, ALICE)).warnings).toMatchObject(looksLike);
    expect((await upload(bench, 'Prod', entry)).warnings).toMatchObject(looksLike);
    const changed = await upload(bench, 'Prod', '{when: {}, shared: {domain: other}}');
    expect(changed).toMatchObject({ changed: true, warnings: [] });
  });

  it('are refused for unknown inputs, and warned of for unknown modules', async () => {
    const { bench } = await assigned();
    const fault = await rejection(
      upload(bench, 'all', '{when: {}, set: {web: {wrkers: 5}}}', '{when: {}, set: {web: {workers: a}}}'),
    );
    expect(fault).toMatchObject({ code: 'invalid_values', errors: [{ line: 2 }, { line: 3 }] });
    const { warnings } = await upload(bench, 'other', '{when: {}, set: {none: {a: 1}}}');
    expect(warnings).toMatchObject([{ line: 2, message: 'there is no module "none"' }]);
  });
});
