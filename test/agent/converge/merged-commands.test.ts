/** Commands that are put together for several resources: what each of them comes to when the command fails. */
import { beforeEach, describe, expect, it } from 'vitest';
import { apply } from '../../../src/agent/converge.js';
import type { Command, CommandResult } from '../../../src/resources/command.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import { clock, content, resultAt, summaryOf } from '../../support/agent.js';
import { FakeHost, type Recorded, resultOf } from '../../support/resources.js';

const wanted = (name: string): DesiredResource => ({
  module: 'site',
  kind: 'package-apt',
  identity: name,
  id: null,
  name: null,
  body: { name, version: '1' },
  after: [],
});

const BROKEN = `dpkg: error processing package bad (--configure):\n exit status 3\n`;

/** As much of apt as it takes: every version is there, `bad` cannot be configured, and `gone` is unknown. */
class Apt extends FakeHost {
  readonly installed = new Map<string, string>();
  readonly installs: string[] = [];
  lock: Recorded | null = null;

  override async run({ argv }: Command): Promise<CommandResult> {
    const [program, verb] = argv;
    if (program === 'find') return resultOf('index 1.0\n');
    if (program === 'dpkg-query') return resultOf(this.rows(argv.slice(3)));
    if (program === 'apt-cache') return resultOf(argv.slice(2).map(offer).join(''));
    if (program === 'apt-get' && verb === 'install') return this.install(argv.filter((one) => /^[a-z]+=1$/.test(one)));
    throw new Error(`there is no record of what "${argv.join(' ')}" does`);
  }

  private rows(names: readonly string[]): string {
    const there = names.filter((name) => this.installed.has(name));
    return there.map((name) => `${name}|all|1|install|ok|${this.installed.get(name)}\n`).join('');
  }

  private install(items: readonly string[]): CommandResult {
    this.installs.push(items.join(' '));
    if (this.lock) return resultOf(this.lock);
    if (items.includes('gone=1')) return resultOf({ code: 100, stderr: 'E: Unable to locate package gone\n' });
    for (const item of items) this.installed.set(item.replace('=1', ''), 'installed');
    if (!this.installed.has('bad')) return resultOf('');
    this.installed.set('bad', 'half-configured');
    return resultOf({ code: 100, stderr: BROKEN });
  }
}

const offer = (name: string): string =>
  `${name}:\n  Installed: (none)\n  Candidate: 1\n  Version table:\n     1 500\n        500 http://deb.example.org main Packages\n`;

describe('a command for several resources', () => {
  let apt: Apt;
  const applied = async (...names: readonly string[]) =>
    (await apply(content(names.map(wanted)), apt, { clock })).results;

  beforeEach(() => {
    apt = new Apt({});
  });

  it('runs once when it succeeds', async () => {
    expect(summaryOf(await applied('one', 'two'))).toEqual(['one create changed', 'two create changed']);
    expect(apt.installs).toEqual(['one=1 two=1']);
  });

  it('fails those that it fails for, and runs for none of them again when their kind can tell', async () => {
    expect(summaryOf(await applied('one', 'bad', 'two'))).toEqual([
      'one create changed',
      'bad create failed command_failed',
      'two create changed',
    ]);
    expect(apt.installs).toEqual(['one=1 bad=1 two=1']);
  });

  it('runs for each alone when none of it was done', async () => {
    expect(summaryOf(await applied('one', 'gone'))).toEqual([
      'one create changed',
      'gone create failed package_unknown',
    ]);
    expect(apt.installs).toEqual(['one=1 gone=1', 'one=1', 'gone=1']);
  });

  it('is done for a resource that has what it wanted, although something else keeps failing', async () => {
    apt.installed.set('bad', 'half-configured');
    expect(summaryOf(await applied('one'))).toEqual(['one create changed']);
  });

  it('is not tried for each, one after the other, when the machine is at fault', async () => {
    apt.lock = { code: 100, stderr: 'E: Could not get lock /var/lib/dpkg/lock. It is held by process 7 (apt)\n' };
    const results = await applied('one', 'two');
    expect(summaryOf(results)).toEqual([
      'one create failed package_manager_locked',
      'two create failed package_manager_locked',
    ]);
    expect(resultAt(results, 1).error?.message).toContain('process 7 (apt)');
    expect(apt.installs).toEqual(['one=1 two=1']);
  });
});
