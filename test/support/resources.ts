/** A machine of recorded facts: answers what it was given, remembers its orders, changes nothing. */
import type { UnpackedFact, UnpackedRequest } from '../../src/resources/archive/unpacked.js';
import type { Command, CommandEnd, CommandResult } from '../../src/resources/command.js';
import type { Accounts, FileStep, Host, ObserveRequest, PathFact, StepOutcome } from '../../src/resources/host.js';

export interface Facts {
  readonly platform?: Host['platform'];
  readonly users?: Readonly<Record<string, number>>;
  readonly groups?: Readonly<Record<string, number>>;
  /** The objects by path; everything else is absent from a directory that is there. */
  readonly paths?: Readonly<Record<string, PathFact>>;
  /** The output of commands, by their arguments with spaces in between; a command that is not here fails the test. */
  readonly commands?: Readonly<Record<string, Recorded>>;
  /** Archives that were unpacked, by their directories. */
  readonly unpacked?: Readonly<Record<string, UnpackedFact>>;
  /** Programs that are not installed, for kinds that look for them without running them. */
  readonly lacks?: readonly string[];
}

/** The observed end of a command: its standard output when it ended with 0, or all of it. */
export type Recorded =
  | string
  | { readonly code?: number; readonly stdout?: string; readonly stderr?: string }
  | { readonly missing: true };

export class FakeHost implements Host {
  readonly platform: Host['platform'];
  readonly observed: ObserveRequest[] = [];
  readonly committed: FileStep[] = [];
  readonly ran: Command[] = [];
  private readonly facts: Facts;

  constructor(facts: Facts) {
    this.facts = facts;
    this.platform = facts.platform ?? 'linux';
  }

  accounts(): Accounts {
    const { users = {}, groups = {} } = this.facts;
    return {
      uid: (owner) => idOf(users, owner),
      gid: (group) => idOf(groups, group),
      loginGroup: (owner) => idOf(groups, owner),
      userName: (uid) => nameOf(users, uid),
      groupName: (gid) => nameOf(groups, gid),
      own: { uid: 0, gid: 0 },
    };
  }

  observe(requests: readonly ObserveRequest[]): readonly PathFact[] {
    this.observed.push(...requests);
    return requests.map(({ path }) => this.facts.paths?.[path] ?? { type: 'absent', parent: 'directory' });
  }

  unpacked(requests: readonly UnpackedRequest[]): readonly UnpackedFact[] {
    return requests.map(({ path }) => this.facts.unpacked?.[path] ?? null);
  }

  unstartable({ argv: [program] }: Pick<Command, 'argv'>): Extract<CommandEnd, { how: 'not-started' }> | null {
    if (this.facts.lacks?.includes(program) !== true) return null;
    return { how: 'not-started', missing: true, message: `there is no ${program}` };
  }

  async commit(steps: readonly FileStep[]): Promise<readonly StepOutcome[]> {
    this.committed.push(...steps);
    return steps.map(() => null);
  }

  async run(command: Command): Promise<CommandResult> {
    this.ran.push(command);
    const { argv } = command;
    const recorded = this.facts.commands?.[argv.join(' ')];
    if (recorded === undefined) throw new Error(`there is no record of what "${argv.join(' ')}" does`);
    return resultOf(recorded);
  }
}

/** A recorded command as the Host answers. */
export function resultOf(recorded: Recorded): CommandResult {
  if (typeof recorded === 'string') return resultOf({ stdout: recorded });
  if ('missing' in recorded) {
    const end = { how: 'not-started', missing: true, message: 'spawn ENOENT' } as const;
    return { end, stdout: '', stderr: '', truncated: false };
  }
  const { code = 0, stdout = '', stderr = '' } = recorded;
  return { end: { how: 'exited', code }, stdout, stderr, truncated: false };
}

const idOf = (ids: Readonly<Record<string, number>>, name: string): number | undefined =>
  ids[name] ?? (/^\d+$/.test(name) ? Number(name) : undefined);

const nameOf = (ids: Readonly<Record<string, number>>, id: number): string =>
  Object.keys(ids).find((name) => ids[name] === id) ?? String(id);
