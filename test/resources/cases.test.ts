/** Every resource kind by its cases: facts and a body in, exactly this decision and these steps out. A case is a file. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { validator } from '../../src/kernel/validator.js';
import { CATALOGUE } from '../../src/resources/catalogue.js';
import type { ObserveRequest } from '../../src/resources/host.js';
import type { Body, Decision, Family, PlanContext, ReadPurpose, TriggerField } from '../../src/resources/kind.js';
import { type Facts, FakeHost } from '../support/resources.js';

interface Case {
  readonly about: string;
  readonly purpose?: ReadPurpose;
  readonly facts: Facts;
  readonly body: Body;
  /** Families and identities that come before, with their kinds; a path without one is a directory. */
  readonly declares?: readonly (readonly [Family, string, string?])[];
  /** Those that come after. */
  readonly later?: readonly (readonly [Family, string])[];
  /** Directories that earlier resources make on their way. */
  readonly made?: readonly string[];
  /** Contents that earlier resources of the plan write. */
  readonly written?: Readonly<Record<string, string>>;
  readonly removes?: readonly (readonly [Family, string])[];
  readonly sensitive?: boolean;
  readonly due?: readonly TriggerField[];
  readonly memo?: string | null;
  readonly mayAppear?: boolean;
  readonly changesRepositories?: boolean;
  /** The questions of the kind to the machine, when the case names them. */
  readonly reads?: readonly ObserveRequest[];
  /** The commands that it runs to read, arguments with spaces in between, when the case names them. */
  readonly runs?: readonly string[];
  readonly existed?: boolean;
  /** The facts to remember after a success. */
  readonly remembers?: string | null;
  readonly decision?: Decision;
  /** The mistake in the body, when it is not to be accepted. */
  readonly problems?: readonly string[];
}

const root = join(import.meta.dirname, 'cases');
const has = (list: Case['declares']) => (family: Family, identity: string, kind?: string) =>
  (list ?? []).some(
    ([one, other, own]) =>
      one === family &&
      other === identity &&
      (own === undefined ? kind?.startsWith('directory') !== false : kind === own),
  );

it('cover every kind', () => expect(readdirSync(root).sort()).toEqual([...CATALOGUE.keys()].sort()));

describe.each(readdirSync(root))('%s', (name) => {
  const kind = CATALOGUE.get(name);
  const files = readdirSync(join(root, name)).map((file) => join(root, name, file));
  const cases = files.map((file) => JSON.parse(readFileSync(file, 'utf8')) as Case);

  it.each(cases)('$about', async ({ purpose = 'plan', facts, body, sensitive = false, ...given }) => {
    if (!kind) throw new Error(`there is no kind ${name}`);
    // What is removed may have been applied by a release that took more.
    const problems = [
      ...validator(kind.schema).problems(body),
      ...(purpose === 'removal' && !given.problems ? [] : kind.check(body)),
    ];
    expect(problems.map(({ path, message }) => `${path} ${message}`)).toEqual(given.problems ?? []);
    if (given.decision === undefined) return;
    const host = new FakeHost(facts);
    const [have] = await kind.read(host, [body], purpose);
    if (given.reads) expect(host.observed).toEqual(given.reads);
    if (given.runs) expect(host.ran.map(({ argv }) => argv.join(' '))).toEqual(given.runs);
    const decide = purpose === 'removal' ? kind.planRemoval : kind.plan;
    const context: PlanContext = {
      accounts: host.accounts(),
      declares: has(given.declares),
      comesLater: has(given.later),
      isMade: (directory) => (given.made ?? []).includes(directory),
      cleared: [],
      written: (path) => given.written?.[path] ?? null,
      removes: has(given.removes),
      sensitive,
      purpose,
      due: new Set(given.due),
      memo: given.memo ?? null,
      mayAppear: given.mayAppear ?? false,
      changesRepositories: given.changesRepositories ?? false,
      digest: (value) => `digest of ${JSON.stringify(value)}`,
    };
    expect(decide.call(kind, body, have, context)).toEqual(given.decision);
    if (given.remembers !== undefined) expect(kind.memo?.(body, have, context) ?? null).toEqual(given.remembers);
    if (given.existed !== undefined) expect(kind.exists(have)).toBe(given.existed);
  });
});
