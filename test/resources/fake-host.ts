/** A machine of recorded facts: answers what it was given, remembers what it was told to do, changes nothing. */
import type { Accounts, Host, ObserveRequest, PathFact, Step, StepOutcome } from '../../src/resources/host.js';

export interface Facts {
  readonly platform?: Host['platform'];
  readonly users?: Readonly<Record<string, number>>;
  readonly groups?: Readonly<Record<string, number>>;
  /** What is at which path; everything else is absent from a directory that is there. */
  readonly paths?: Readonly<Record<string, PathFact>>;
}

export class FakeHost implements Host {
  readonly platform: Host['platform'];
  readonly observed: ObserveRequest[] = [];
  readonly committed: Step[] = [];
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
      userName: (uid) => nameOf(users, uid),
      groupName: (gid) => nameOf(groups, gid),
    };
  }

  observe(requests: readonly ObserveRequest[]): readonly PathFact[] {
    this.observed.push(...requests);
    return requests.map(({ path }) => this.facts.paths?.[path] ?? { type: 'absent', parent: 'directory' });
  }

  async commit(steps: readonly Step[]): Promise<readonly StepOutcome[]> {
    this.committed.push(...steps);
    return steps.map(() => null);
  }
}

const idOf = (ids: Readonly<Record<string, number>>, name: string): number | undefined =>
  ids[name] ?? (/^\d+$/.test(name) ? Number(name) : undefined);

const nameOf = (ids: Readonly<Record<string, number>>, id: number): string =>
  Object.keys(ids).find((name) => ids[name] === id) ?? String(id);
