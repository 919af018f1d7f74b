import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Temporaries } from '../../../src/agent/host/temporaries.js';
import { commitOne, host, place, write } from '../../support/agent.js';

const hex = (pid: number): string => pid.toString(16).padStart(6, '0');
const nameOf = (pid: number, name = 'motd'): string => `.${name}.orch-${hex(pid)}0123456789.dpkg-tmp`;

/** The id of a process that has ended. */
const deadPid = (): number => spawnSync(process.execPath, ['-e', '']).pid;

describe('temporary files', () => {
  it('have names that others pass over, and that cannot be guessed', () => {
    const temporaries = new Temporaries();
    const names = [temporaries.nameFor('motd'), temporaries.nameFor('motd')];
    for (const name of names) expect(name).toMatch(/^\.motd\.orch-[0-9a-f]{16}\.dpkg-tmp$/);
    expect(names[0]).not.toBe(names[1]);
  });

  it('of a crashed run go when their directory is touched next', async () => {
    const directory = place();
    writeFileSync(join(directory, nameOf(deadPid())), 'half a secret');
    writeFileSync(join(directory, nameOf(process.pid, 'a\nb')), 'from an earlier life');
    expect(await commitOne(write(join(directory, 'motd'), 'x'))).toBeNull();
    expect(readdirSync(directory)).toEqual(['motd']);
  });

  it('of another process of this program stay while it lives, whatever the clock says; those of other programs go', async () => {
    const directory = place();
    const [ours, other] = [spawn(process.execPath, ['-e', 'setInterval(() => 0, 1e6)']), spawn('sleep', ['1000000'])];
    try {
      const [young, old] = [nameOf(ours.pid ?? 0), nameOf(ours.pid ?? 0, 'old')];
      for (const name of [young, old, nameOf(other.pid ?? 0)]) writeFileSync(join(directory, name), '');
      utimesSync(join(directory, old), 0, 0);
      expect(await commitOne(write(join(directory, 'motd'), 'x'))).toBeNull();
      expect(readdirSync(directory).sort()).toEqual([young, old, 'motd'].sort());
    } finally {
      for (const child of [ours, other]) child.kill('SIGKILL');
    }
  });

  it('are distinguished from names that only look like them', async () => {
    const directory = place();
    const pid = deadPid();
    const others = [`motd.orch-${hex(pid)}0123456789.dpkg-tmp`, `.motd.orch-${hex(pid)}.dpkg-tmp`, '.motd.dpkg-tmp'];
    for (const name of others) writeFileSync(join(directory, name), '');
    symlinkSync('/etc/passwd', join(directory, nameOf(pid)));
    expect(await commitOne(write(join(directory, 'x'), ''))).toBeNull();
    expect(readdirSync(directory).sort()).toEqual([...others, nameOf(pid), 'x'].sort());
  });

  it('are looked for once in a run', async () => {
    const directory = place();
    const machine = host();
    expect(await machine.commit([write(join(directory, 'a'), '')])).toEqual([null]);
    const late = nameOf(process.pid, 'late');
    writeFileSync(join(directory, late), '');
    expect(await machine.commit([write(join(directory, 'b'), '')])).toEqual([null]);
    expect(readdirSync(directory).sort()).toEqual([late, 'a', 'b']);
  });
});
