/** docs/start.md on two booted machines: its commands, in their order, print what it shows. */
import { readFileSync, rmSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../support/orch.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { makePackages } from './orch-package.js';
import { describeHosts } from './requirements.js';

const guide = readFileSync(new URL('../../docs/start.md', import.meta.url), 'utf8');

const blocks = [...guide.matchAll(/^```(?:yaml)?\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text);

/** Returns the block that contains the text. */
function blockWith(text: string): string {
  const block = blocks.find((one) => one.includes(text));
  if (block === undefined) throw new Error(`docs/start.md has no block with ${text}`);
  return block;
}

/** The commands with a prompt, each with the output that the guide shows. */
const steps = blocks
  .flatMap((block) => block.split(/^\$ /m).slice(1))
  .map((text) => {
    const [command = '', ...output] = text.split('\n');
    return { command, output: output.join('\n') };
  });

/** Replaces what differs between two fleets. */
const general = (text: string): string =>
  text
    .replaceAll(/\b[0-9A-HJKMNP-TV-Z]{26}\b/g, 'ULID')
    .replaceAll(/\b[0-9a-f]{12,64}\b/g, 'HEX')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:]+Z/g, 'TIME')
    .replaceAll(/debian \d+ \w+/g, 'PLATFORM')
    .replaceAll(/ +$/gm, '')
    .trim();

/** Removes the progress line, which goes to standard error. */
const withoutProgress = (text: string): string => text.replace(/^Rollout \S+ on .*\n/m, '');

/** Commands that ask, at a terminal. */
const ASKING = /^orch (apply|agents approve)/;

const needs = { patchelf: 'patchelf', strip: 'binutils', 'g++': 'g++', make: 'make', python3: 'python3' };

describeHosts(
  'the first ten minutes',
  () => {
    let packages: string;
    let fleet: Fleet;
    let control: BootedHost;
    let web: BootedHost;
    let nodeId = '';

    const ok = async (host: BootedHost, line: string): Promise<string> => {
      const { status, stdout, stderr } = await host.run(['sh', '-c', `cd /root && ${line}`], { timeoutMs: 120_000 });
      if (status !== 0) throw new Error(`${host.name}: ${line} ended with ${status}:\n${stderr}${stdout}`);
      return stdout;
    };

    /** Runs a command on a terminal, and types each answer once its question is shown. Returns what the terminal was sent, as text. */
    const answered = async (host: BootedHost, line: string, answers: readonly (readonly [RegExp, string])[]) => {
      const onTerminal = `stty cols 120 rows 40; exec ${line}`;
      const argv = ['script', '--quiet', '--return', '--flush', '--command', onTerminal, '/dev/null'];
      const program = await host.spawn(argv, { env: { TERM: 'xterm-256color' } });
      for (const [question, answer] of answers) {
        await program.said(question, 120_000);
        program.write(answer);
      }
      const { status, stdout } = await program.ended;
      if (status !== 0) throw new Error(`${host.name}: ${line} ended with ${status}:\n${stdout}`);
      return stripVTControlCharacters(stdout).replaceAll('\r', '');
    };

    /** Runs the next steps of the guide on the control host up to the one with this command, and compares their output. */
    const followTo = async (last: string) => {
      for (;;) {
        const step = steps.shift();
        if (step === undefined) throw new Error(`docs/start.md has no further step ${last}`);
        const asks = ASKING.test(step.command) && !step.command.includes('--yes');
        const command = step.command.replace(/\b[0-9a-f]{12}\b/, nodeId);
        const printed = asks ? await answered(control, command, [[/\(y\/N\)/, 'y\r']]) : await ok(control, command);
        if (asks) expect(general(printed), command).toContain(general(step.output));
        else if (step.output.trim() !== '') expect(general(printed), command).toBe(general(step.output));
        if (step.command === last) return printed;
      }
    };

    beforeAll(async () => {
      packages = await makePackages('deb');
      fleet = await startFleet({
        hosts: ['control', 'web-01'],
        project: null,
        packages: ['curl'],
        binds: [{ from: packages, to: '/srv/packages' }],
      });
      control = fleet.host('control');
      web = fleet.host('web-01');
    });

    afterAll(async () => {
      await fleet?.stop();
      if (packages !== undefined) rmSync(packages, { recursive: true, force: true });
    });

    it('go as the guide says', async () => {
      expect(blockWith('orch serve install')).toContain('dpkg --install orch_');
      await ok(control, 'dpkg --install /srv/packages/*.deb 2>&1');
      // As a person answers at a terminal: the first choice is "other machines".
      expect(guide).toContain('Answer "other machines", and a name');
      const installed = await answered(control, 'orch serve install', [
        [/Who reaches this orchestrator\?[\s\S]*❯ other machines/, '\r'],
        [/Under which name or address do they reach it[\s\S]*\?/, 'control\r'],
      ]);
      expect(general(installed)).toContain(general(blockWith('The orchestrator runs as')));
      await followTo('orch status');

      const line = /^ (echo .*)$/m.exec(await ok(control, 'orch enroll create'))?.[1] ?? '';
      const step = steps.shift();
      expect(step?.command).toBe('orch enroll create');
      const shape = (text: string) => text.replace(/Bearer [^"]*/, 'Bearer').replace(/sha256[^']*/, 'pin');
      expect(step?.output).toContain(shape(line).slice(0, 30));
      expect(shape(/^ (echo .*)$/m.exec(step?.output ?? '')?.[1] ?? '')).toBe(shape(line));
      await ok(web, line);
      nodeId = /^Node ID +(\w{12})/m.exec(await ok(web, 'orch agent status'))?.[1] ?? '';
      await followTo('orch agents tag web-01 role=web');

      await control.writeFile('/root/greeting.orch.yaml', blockWith('name: greeting'));
      const applied = await followTo('orch apply --assignment web');
      expect(general(applied)).toContain(general(withoutProgress(blockWith('Applied: 2 created.'))));
      expect(await web.readFile('/opt/greeting/motd')).toBe('This is web-01, a machine for web.\n');
      await until(async () => (await ok(control, 'orch agents')).includes('in sync'), 'the standing is in sync');
      await followTo('orch agents');
      const [, again = ''] = /`(Applied: everything[^`]*)`/.exec(guide) ?? [];
      expect(await ok(control, 'orch apply --assignment web --yes')).toContain(again);

      await ok(web, blockWith('echo changed'));
      await followTo('orch drift web-01');
      expect(await ok(control, 'orch agents')).toContain('drifted');
      const repaired = steps.shift();
      expect(general(await ok(control, repaired?.command ?? ''))).toContain(
        general(withoutProgress(repaired?.output ?? '')),
      );
      expect(steps).toEqual([]);

      await ok(control, blockWith('--mode enforce'));
      await ok(web, 'echo changed > /opt/greeting/motd');
      await ok(control, 'orch drift web-01');
      const isRepaired = async () => (await web.readFile('/opt/greeting/motd')).startsWith('This is web-01');
      await until(isRepaired, 'the file is repaired');
      await until(async () => (await ok(control, 'orch audit list')).includes('repair:web'), 'the audit log says so');

      const [remove, plan, apply] = blockWith('orch assignments remove web')
        .split('\n')
        .map((text) => text.replace(/ +#.*/, ''));
      await ok(control, `${remove} --yes`);
      expect(await ok(control, plan ?? '')).toMatch(/- directory-unix \/opt\/greeting/);
      await ok(control, `${apply} --yes`);
      expect(await web.run(['test', '-e', '/opt/greeting'])).toMatchObject({ status: 1 });
    });
  },
  needs,
);
