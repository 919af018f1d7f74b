/** `orch plan|apply|drift --local` in a host, as root or as another user, with the results as data. */
import { expect } from 'vitest';
import type { DriftDetail, RunResult } from '../../src/contract/runs.js';
import type { ResourceResult } from '../../src/resources/result.js';
import type { Outcome } from './command.js';
import type { BootedHost } from './host.js';

export type Body = Readonly<Record<string, unknown>>;

/** One entry of a module, such as `{resource: {'file-unix': {path: '/etc/motd'}}}`. */
export interface Entry {
  readonly id?: string;
  readonly depends_on?: readonly string[];
  readonly resource: Readonly<Record<string, Body>>;
}

/** An entry for what is not there, such as `{absent: {'file-unix': {path: '/etc/motd'}}}`. */
export interface AbsentEntry extends Omit<Entry, 'resource'> {
  readonly absent: Readonly<Record<string, Body>>;
}

export const absent = (kind: string, body: Body, more: Omit<Entry, 'resource'> = {}): AbsentEntry => ({
  ...more,
  absent: { [kind]: body },
});

export const entry = (kind: string, body: Body, more: Omit<Entry, 'resource'> = {}): Entry => ({
  ...more,
  resource: { [kind]: body },
});

export class LocalOrch {
  private readonly host: BootedHost;
  private readonly file: string;
  private readonly user: string | null;

  /** @param file where the module is kept; the user has to be able to read it */
  constructor(host: BootedHost, file: string, user: string | null = null) {
    this.host = host;
    this.file = file;
    this.user = user;
  }

  /** The desired state of the machine from now on. */
  async declare(...resources: readonly (Entry | AbsentEntry)[]): Promise<void> {
    const text = JSON.stringify({ name: 'site', supports: [{ platform: 'linux' }], resources });
    await this.host.writeFile(this.file, text, '0644');
  }

  run(verb: 'plan' | 'apply' | 'drift', ...flags: readonly string[]): Promise<Outcome> {
    const argv = ['orch', verb, '--local', ...(verb === 'drift' ? [] : ['-f', this.file]), '-o', 'json', ...flags];
    const as = this.user === null ? [] : ['runuser', '-l', this.user, '-s', '/bin/sh', '-c', 'exec "$0" "$@"', '--'];
    return this.host.run([...as, ...argv], { timeoutMs: 120_000 });
  }

  /** Every resource, in the order of the run. */
  async results(verb: 'plan' | 'apply' | 'drift', ...flags: readonly string[]): Promise<readonly ResourceResult[]> {
    const { stdout, stderr } = await this.run(verb, ...flags);
    if (!stdout.startsWith('{')) throw new Error(`orch ${verb} says:\n${stderr}${stdout}`);
    return (JSON.parse(stdout) as RunResult | DriftDetail).resources;
  }

  apply(): Promise<readonly ResourceResult[]> {
    return this.results('apply', '--yes', '--allow-removals', '1000');
  }

  /** Declares and applies the entries. Returns what has failed. */
  async applied(...entries: readonly (Entry | AbsentEntry)[]): Promise<Readonly<Record<string, string>>> {
    await this.declare(...entries);
    return failures(await this.apply());
  }

  /** Declares and applies the entries, and expects what the plan has said. Returns all identities with their actions. */
  async actionsOf(...entries: readonly (Entry | AbsentEntry)[]): Promise<readonly string[]> {
    await this.declare(...entries);
    const planned = actionsIn(await this.results('plan'));
    const results = await this.apply();
    expect(failures(results)).toEqual({});
    expect(actionsIn(results)).toEqual(planned);
    return planned;
  }

  /** As `actionsOf`, without what stays as it is. */
  async doneBy(...entries: readonly (Entry | AbsentEntry)[]): Promise<readonly string[]> {
    return (await this.actionsOf(...entries)).filter((one) => !one.endsWith(' none'));
  }

  /** Declares and applies the entries, and expects the changes that the plan has said. Returns them. */
  async appliedAsPlanned(...entries: readonly (Entry | AbsentEntry)[]): Promise<readonly Difference[]> {
    await this.declare(...entries);
    const planned = await this.differences();
    const results = await this.apply();
    expect(differencesIn(results)).toEqual(planned);
    expect(failures(results)).toEqual({});
    return planned;
  }

  /** Expects that a plan and a drift check find nothing to do. */
  async isSettled(): Promise<void> {
    expect(await this.differences()).toEqual([]);
    expect(await this.differences('drift')).toEqual([]);
  }

  /** Identity, action and the fields that differ, of everything that is not as it should be. */
  async differences(verb: 'plan' | 'drift' = 'plan'): Promise<readonly Difference[]> {
    return differencesIn(await this.results(verb));
  }
}

type Difference = readonly [identity: string, action: string, fields: string];

const differencesIn = (results: readonly ResourceResult[]): readonly Difference[] =>
  results
    .filter(({ status }) => status !== 'unchanged')
    .map(({ identity, action, changes }) => [identity, action, changes.map(({ field }) => field).join()]);

const actionsIn = (results: readonly ResourceResult[]): readonly string[] =>
  results.map(({ identity, action }) => `${identity} ${action}`).sort();

/** Code and message of what has failed, by identity. */
export const failures = (results: readonly ResourceResult[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    results.flatMap(({ identity, error }) => (error === null ? [] : [[identity, `${error.code}: ${error.message}`]])),
  );

/** Runs a script in the host that has to succeed; what it writes, without the last line end. */
export async function sh(host: BootedHost, script: string): Promise<string> {
  const { status, stdout, stderr } = await host.run(['sh', '-c', script], { timeoutMs: 60_000 });
  if (status !== 0) throw new Error(`${script} ended with ${status}:\n${stderr}${stdout}`);
  return stdout.replace(/\n$/, '');
}
