/** Packages of apt and dnf from a file beside the module and from an address, on a booted machine. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { DNF_PACKAGES, NO_LOCAL_PLUGIN } from './base-image.js';
import { type DebRepository, debRepository, debTools } from './deb-repository.js';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { absent, type Body, type Entry, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';
import { type RpmRepository, rpmRepository, rpmTools } from './rpm-repository.js';

const KEEP = entry('file-unix', { path: '/root/keep', content: '' });

interface Format {
  readonly kind: string;
  /** File of a package, by name and version. */
  readonly file: (name: string, version: string) => string;
  /** The version as the manager shows it. */
  readonly shown: (version: string) => string;
  readonly installed: (name: string) => string;
  /** Installs this version by hand. */
  readonly install: (name: string, version: string) => string;
}

const DEB: Format = {
  kind: 'package-apt',
  file: (name, version) => `${name}_${version}.deb`,
  shown: (version) => version,
  installed: (name) => `dpkg-query -W -f '\${Version}' ${name} 2>/dev/null || true`,
  // apt takes its cache for up to date while the status of dpkg has the same size and second.
  install: (name, version) => `dpkg -i /srv/debs/${name}_${version}.deb && rm -f /var/cache/apt/*pkgcache.bin`,
};
const RPM: Format = {
  kind: 'package-dnf',
  file: (name, version) => `${name}-${version}-1.rpm`,
  shown: (version) => `${version}-1`,
  installed: (name) => `rpm -q --qf '%{VERSION}-%{RELEASE}' ${name} | grep -v 'not installed' || true`,
  install: (name, version) => `rpm -U --oldpackage /srv/rpms/${name}-${version}-1.rpm`,
};

describeHosts(
  'packages from files on a booted machine',
  () => {
    let fleet: Fleet;
    let host: BootedHost;
    let orch: LocalOrch;
    let debs: DebRepository;
    let rpms: RpmRepository;
    let server: Server;
    let port = 0;
    const run = (script: string) => sh(host, script);
    const directoryOf = ({ kind }: Format) => (kind === DEB.kind ? debs.directory : rpms.directory);
    const sumOf = (format: Format, name: string, version: string) =>
      createHash('sha256')
        .update(readFileSync(join(directoryOf(format), format.file(name, version))))
        .digest('hex');

    /** A package at an address. */
    const fromUrl = (format: Format, name: string, version: string, body: Body = {}): Entry =>
      entry(format.kind, {
        name,
        version,
        url: `http://${fleet.gateway}:${port}/${format.file(name, version)}`,
        sha256: sumOf(format, name, version),
        ...body,
      });
    /** A package beside the module. */
    const beside = (format: Format, name: string, version: string, body: Body = {}): Entry =>
      entry(format.kind, { name, version, source: `files/${format.file(name, version)}`, ...body });

    /** Applies entries. What the plan says, the apply does. */
    const apply = async (...entries: readonly (Entry | ReturnType<typeof absent>)[]) => {
      await orch.declare(KEEP, ...entries);
      const shown = ({ identity, action, changes }: Awaited<ReturnType<LocalOrch['apply']>>[number]) =>
        [identity, action, ...changes.map(({ field, before, after }) => `${field} ${before} -> ${after}`)].join(', ');
      const others = (results: Awaited<ReturnType<LocalOrch['apply']>>) =>
        results.filter(({ identity }) => identity !== '/root/keep');
      const planned = others(await orch.results('plan')).map(shown);
      const results = await orch.apply();
      expect(failures(results)).toEqual({});
      expect(others(results).map(shown)).toEqual(planned);
      return planned;
    };
    const failed = async (...entries: readonly Entry[]) => {
      await orch.declare(KEEP, ...entries);
      return failures(await orch.apply());
    };
    const isSettled = async () => {
      expect(await orch.differences()).toEqual([]);
      expect(await orch.differences('drift')).toEqual([]);
    };
    const leftovers = () => run('ls -d /var/tmp/orch-* /root/.local/share/orch*/scripts/* 2>/dev/null || true');

    beforeAll(async () => {
      [debs, rpms] = [debRepository(), rpmRepository()];
      await debs.publish([
        { name: 'lib', version: '1.0' },
        { name: 'tool', version: '1.0', fields: { Depends: 'lib' } },
        { name: 'tool', version: '2.0', fields: { Depends: 'lib' } },
        { name: 'foreign', version: '1.0', fields: { Architecture: 's390x' } },
        { name: 'needy', version: '1.0', fields: { Depends: 'nothing-like-it' } },
        { name: 'bad', version: '1.0', postinst: 'echo "no licence found" >&2; exit 3' },
      ]);
      await rpms.publish([
        { name: 'shell', version: '1', head: ['Provides: /bin/sh'] },
        { name: 'lib', version: '1.0' },
        { name: 'tool', version: '1.0', head: ['Requires: lib'] },
        { name: 'tool', version: '2.0', head: ['Requires: lib'] },
        { name: 'needy', version: '1.0', head: ['Requires: nothing-like-it'] },
      ]);
      server = createServer((request, response) => {
        const name = basename(request.url ?? '');
        const path = join(name.endsWith('.deb') ? debs.directory : rpms.directory, name);
        return existsSync(path) ? response.end(readFileSync(path)) : response.writeHead(404).end();
      });
      await new Promise<void>((resolve) => void server.listen(0, '0.0.0.0', resolve));
      const address = server.address();
      port = typeof address === 'object' ? (address?.port ?? 0) : 0;
      const binds = [
        { from: debs.directory, to: '/srv/debs' },
        { from: rpms.directory, to: '/srv/rpms' },
      ];
      fleet = await startFleet({ hosts: ['files-01'], packages: DNF_PACKAGES, binds });
      host = fleet.host('files-01');
      orch = new LocalOrch(host, '/root/site.orch.yaml');
      await host.writeFile(...NO_LOCAL_PLUGIN);
      await host.writeFile('/etc/apt/sources.list', 'deb [trusted=yes] file:/srv/debs ./\n');
      await host.writeFile('/etc/yum.repos.d/test.repo', '[test]\nname=test\nbaseurl=file:///srv/rpms\ngpgcheck=0\n');
      await run('mkdir /root/files && cp /srv/debs/*.deb /srv/rpms/*.rpm /root/files && useradd -m eve');
      await run('apt-get update -q && dnf -q makecache');
    });

    afterAll(async () => {
      await fleet?.stop();
      server?.close();
      debs?.remove();
      rpms?.remove();
    });

    beforeEach(async () => {
      await run('dpkg --purge tool bad lib 2>&1; rpm -e tool; rpm -e lib; rm -f /var/cache/apt/*pkgcache.bin; true');
      await run('rm -rf /root/.local /var/lib/orch-local');
    });

    it.each([DEB, RPM])('come from an address with what they depend on, are mended, and go: $kind', async (format) => {
      const { shown, installed } = format;
      const file = (version: string) =>
        `file null -> http://${fleet.gateway}:${port}/${format.file('tool', version)}, SHA-256 ${sumOf(format, 'tool', version).slice(0, 12)}…`;
      expect(await apply(fromUrl(format, 'tool', '1.0'))).toEqual([
        `tool, create, version null -> 1.0, ${file('1.0')}`,
      ]);
      expect(await run(installed('tool'))).toBe(shown('1.0'));
      expect(await run(installed('lib'))).toBe(shown('1.0'));
      await isSettled();
      expect(await leftovers()).toBe('');
      // The version of the file is the wanted one, also where a newer one is installed.
      await run(format.install('tool', '2.0'));
      expect(await orch.differences('drift')).toEqual([['tool', 'update', 'version,file']]);
      expect(await apply(fromUrl(format, 'tool', '1.0'))).toEqual([
        `tool, update, version ${shown('2.0')} -> 1.0, ${file('1.0')}`,
      ]);
      expect(await run(installed('tool'))).toBe(shown('1.0'));
      expect(await apply(fromUrl(format, 'tool', '2.0'))).toEqual([
        `tool, update, version ${shown('1.0')} -> 2.0, ${file('2.0')}`,
      ]);
      await isSettled();
      expect(await apply()).toEqual(['tool, remove']);
      expect(await run(installed('tool'))).toBe('');
    });

    it.each([DEB, RPM])('come from beside the module, in any version where that is enough: $kind', async (format) => {
      const { installed, shown } = format;
      expect(
        await apply(beside(format, 'tool', 'installed', { source: `files/${format.file('tool', '1.0')}` })),
      ).toEqual([expect.stringMatching(/^tool, create, file null -> files\/tool.1\.0.*, SHA-256 /)]);
      await run(format.install('tool', '2.0'));
      await isSettled();
      expect(await apply(beside(format, 'tool', '1.0'))).toHaveLength(1);
      expect(await run(installed('tool'))).toBe(shown('1.0'));
      await isSettled();
      expect(await apply()).toEqual(['tool, remove']);
      expect(await apply(absent(format.kind, { name: 'tool' }))).toEqual(['tool, none']);
    });

    it.each([DEB, RPM])('are refused where the file is another package or none: $kind', async (format) => {
      const { kind, installed } = format;
      const wrong = async (name: string, version: string, source: string) =>
        (await failed(entry(kind, { name, version, source: `files/${source}` })))[name];
      const mend = 'declare the package, version and architecture of the file, or give another file';
      const full = format.shown('1.0');
      const native = kind === DEB.kind ? 'all' : 'noarch';
      expect(await wrong('other', '1.0', format.file('tool', '1.0'))).toBe(
        `content_unsuitable: other is not installed: the file is the package tool in version ${full} for ${native}; ${mend}`,
      );
      expect(await wrong('tool', '1.5', format.file('tool', '1.0'))).toBe(
        `content_unsuitable: tool is not installed: the file is the package tool in version ${full} for ${native}; ${mend}`,
      );
      await run(`echo nothing >/root/files/broken`);
      const reader = kind === DEB.kind ? 'dpkg-deb' : 'rpm';
      expect(await wrong('tool', '1.0', 'broken')).toBe(
        `content_unsuitable: tool is not installed: ${reader} cannot read the file as a package; ${mend}`,
      );
      expect(await failed(fromUrl(format, 'tool', '1.0', { sha256: '0'.repeat(64) }))).toEqual({});
      const refused = JSON.parse((await orch.run('apply', '--yes')).stdout);
      expect(refused.error.message).toContain('what has come has another SHA-256; nothing was changed');
      expect(await wrong('needy', '1.0', format.file('needy', '1.0'))).toMatch(
        /^command_failed: (apt|dnf) cannot install needy: [\s\S]*nothing-like-it/,
      );
      expect(await run(`${installed('tool')}; ${installed('needy')}`)).toBe('');
      expect(await leftovers()).toBe('');
    });

    it('have the architecture that is declared', async () => {
      expect((await failed(beside(DEB, 'foreign', '1.0'))).foreign).toContain(
        'the file is the package foreign in version 1.0 for s390x',
      );
      const arch = await run('uname -m');
      expect(
        (await failed(beside(RPM, `tool.${arch}`, '1.0', { source: `files/${RPM.file('tool', '1.0')}` })))[
          `tool.${arch}`
        ],
      ).toContain('the file is the package tool in version 1.0-1 for noarch');
    });

    it('fail with what their scripts say', async () => {
      expect((await failed(beside(DEB, 'bad', '1.0'))).bad).toMatch(
        /^command_failed: bad failed: [\s\S]*no licence found/,
      );
      expect(await apply()).toEqual(['bad, remove']);
    });

    it.each([DEB, RPM])('are not installed by an ordinary user: $kind', async (format) => {
      const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
      await eve.declare(fromUrl(format, 'tool', '1.0'));
      expect(failures(await eve.apply())).toEqual({
        tool: 'permission_denied: this user may not change the package tool; run the agent as root',
      });
    });
  },
  { ...debTools, ...rpmTools },
);
