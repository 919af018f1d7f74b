/** Versions of packages, of this system's dpkg and of a stand-in of rpm with its output. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { PackageReader } from '../../src/agent/facts/package-versions.js';

/** A root with the database of rpm, and an `rpm` that is this shell script. */
function rpmSystem(script: string) {
  const root = mkdtempSync(join(tmpdir(), 'orch-rpm-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const database = join(root, 'usr/lib/sysimage/rpm/rpmdb.sqlite');
  mkdirSync(join(database, '..'), { recursive: true });
  writeFileSync(database, '');
  const program = join(root, 'rpm');
  writeFileSync(program, `#!/bin/sh\n${script}`, { mode: 0o755 });
  return { database, reader: new PackageReader(root, (name) => (name === 'rpm' ? program : null)) };
}

describe('the versions of packages', () => {
  it.runIf(existsSync('/var/lib/dpkg/status'))('are those of dpkg without their epochs', async () => {
    const reader = new PackageReader();
    expect(reader.hasChanged()).toBe(false);
    const query = ['--show', `--showformat=\${Version}`, 'libc-bin'];
    const version = execFileSync('dpkg-query', query, { encoding: 'utf8' }).replace(/^\d+:/, '');
    expect(await reader.read(['libc-bin', 'no-such-package'])).toEqual({
      versions: { 'libc-bin': version },
      problem: null,
    });
    expect(reader.hasChanged()).toBe(false);
  });

  it('are those of rpm, the newest of several, and are read again once its database has changed', async () => {
    const lines = ['kernel|5.14.0-1.el9|installed', 'kernel|5.14.0-2.el9|installed', 'package nginx is not installed'];
    const { database, reader } = rpmSystem(`printf '${lines.join('\\n')}\\n'; exit 1\n`);
    const report = { versions: { kernel: '5.14.0-2.el9' }, problem: null };
    expect(await reader.read(['kernel', 'nginx'])).toEqual(report);
    expect(reader.hasChanged()).toBe(false);
    writeFileSync(database, 'changed');
    expect(reader.hasChanged()).toBe(true);
    expect(await reader.read()).toEqual(report);
    expect(reader.hasChanged()).toBe(false);
  });

  it('have a problem where the package manager gives none', async () => {
    const { reader } = rpmSystem('echo "error: cannot open Packages database" >&2; exit 1\n');
    const { versions, problem } = await reader.read(['kernel', 'nginx']);
    expect(versions).toEqual({});
    expect(problem).toMatch(/rpm did not answer for all packages$/);
  });

  it('are none on a system with another package manager', async () => {
    const reader = new PackageReader('/nonexistent');
    expect(await reader.read(['nginx'])).toEqual({ versions: {}, problem: null });
    expect(reader.hasChanged()).toBe(false);
  });
});
