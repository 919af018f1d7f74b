/** Locales, modules of the kernel and alternatives of a booted Debian. Its kernel loads no modules, so a directory stands in for it. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Fleet, startFleet } from './fleet.js';
import type { BootedHost } from './host.js';
import { type Body, entry, failures, LocalOrch, sh } from './local-orch.js';
import { describeHosts } from './requirements.js';

const kept = entry('file-unix', { path: '/etc/kept', content: '' });

describeHosts('choices of the system on a booted machine', () => {
  let fleet: Fleet;
  let host: BootedHost;
  let orch: LocalOrch;
  const run = (script: string) => sh(host, script);

  beforeAll(async () => {
    fleet = await startFleet({ hosts: ['choices'], capabilities: ['CAP_SYS_ADMIN'] });
    host = fleet.host('choices');
    orch = new LocalOrch(host, '/root/site.orch.yaml');
    await run('useradd -m eve');
  });

  afterAll(async () => {
    await fleet?.stop();
  });

  beforeEach(async () => {
    await run('rm -rf /root/.local /var/lib/orch-local');
  });

  it('set a locale that is generated, beside what others have set', async () => {
    const locale = (body: Body) => entry('locale-linux', body);
    await run(`printf '# by hand\\nLANGUAGE=de\\n' >/etc/default/locale`);
    expect(await orch.appliedAsPlanned(locale({ lang: 'de_DE.UTF-8', variables: { LC_TIME: 'C.UTF-8' } }))).toEqual([
      ['system', 'update', 'generated,lang,LC_TIME'],
    ]);
    expect(await run('locale -a | grep de_DE; cat /etc/default/locale; grep "^[a-z]" /etc/locale.gen')).toBe(
      'de_DE.utf8\n# by hand\nLANGUAGE=de\nLANG=de_DE.UTF-8\nLC_TIME=C.UTF-8\nde_DE.UTF-8 UTF-8',
    );
    expect(await run('. /etc/default/locale; export LANG; locale charmap; LC_ALL=$LANG date -d 2026-01-06 +%A')).toBe(
      'UTF-8\nDienstag',
    );
    await orch.isSettled();
    await run("sed -i 's/^LANG=.*/LANG=C/' /etc/default/locale");
    expect(await orch.differences('drift')).toEqual([['system', 'update', 'lang']]);
    expect(failures(await orch.apply())).toEqual({});
    expect(await orch.applied(locale({ lang: 'xx_XX.UTF-8' }))).toEqual({
      system: 'value_unknown: /etc/locale.gen lists no locale xx_XX.UTF-8; correct the name, or add its line there',
    });
    expect(await orch.applied(kept)).toEqual({});
    expect(await run('grep LANG= /etc/default/locale')).toBe('LANG=de_DE.UTF-8');
    const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
    await eve.declare(locale({ lang: 'C.UTF-8' }));
    expect(failures(await eve.apply())).toEqual({ system: expect.stringMatching(/^permission_denied: /) });
  });

  it('choose an alternative by hand, and give the choice back', async () => {
    await run(`for one in a b c; do printf '#!/bin/sh\\necho %s\\n' $one >/opt/$one; chmod 755 /opt/$one; done
      update-alternatives --install /usr/local/bin/tool tool /opt/a 10; update-alternatives --install /usr/local/bin/tool tool /opt/b 20`);
    const tool = (path: string) => entry('alternatives-linux', { name: 'tool', path });
    expect(await orch.appliedAsPlanned(tool('/opt/a'))).toEqual([['tool', 'create', 'path,mode']]);
    expect(await run('tool')).toBe('a');
    await orch.isSettled();
    await run('update-alternatives --auto tool');
    expect(await orch.differences('drift')).toEqual([['tool', 'create', 'path,mode']]);
    expect(failures(await orch.apply())).toEqual({});
    expect(await orch.applied(tool('/opt/c'), entry('alternatives-linux', { name: 'none', path: '/opt/c' }))).toEqual({
      tool: 'value_unknown: /opt/c is no alternative for tool, which are /opt/a, /opt/b; correct the path, or declare the package that brings it before',
      none: 'value_unknown: this machine has no alternatives for none; correct the name, or declare the package that brings them before',
    });
    expect(await orch.applied(kept)).toEqual({});
    expect(await run('tool; update-alternatives --query tool | grep Status')).toBe('b\nStatus: auto');
    await orch.isSettled();
    const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
    await eve.declare(tool('/opt/a'));
    expect(failures(await eve.apply())).toEqual({
      tool: expect.stringMatching(/^(permission_denied|command_failed): /),
    });
    expect(await run('tool')).toBe('b');
  });

  it('keep a choice that was made by hand before', async () => {
    await run('update-alternatives --set tool /opt/a');
    expect(await orch.applied(entry('alternatives-linux', { name: 'tool', path: '/opt/b' }), kept)).toEqual({});
    expect(await orch.applied(kept)).toEqual({});
    expect(await run('tool; update-alternatives --query tool | grep Status')).toBe('b\nStatus: manual');
  });

  it('load a module now and at each start, with its options', async () => {
    const module = (body: Body) => entry('kernel-module-linux', body);
    expect(await orch.applied(module({ name: 'dummy' }))).toEqual({
      dummy: 'command_missing: modprobe is not installed on this machine',
    });
    expect(await run('ls /etc/modules-load.d/orch-dummy.conf 2>/dev/null; true')).toBe('');
    await run(`mount -t tmpfs none /sys/module && printf '%s\\n' '#!/bin/sh' 'case "$2" in
      dummy|br_netfilter) mkdir -p "/sys/module/$2"; cat /etc/modprobe.d/orch-$2.conf >/sys/module/$2/options 2>/dev/null; exit 0;;
      fixed) echo "modprobe: ERROR: could not insert fixed: Operation not permitted" >&2; exit 1;;
      *) echo "modprobe: FATAL: Module $2 not found in directory /lib/modules/1" >&2; exit 1;; esac' >/usr/sbin/modprobe
      chmod 755 /usr/sbin/modprobe`);
    const all = [module({ name: 'dummy', options: 'numdummies=2' }), module({ name: 'br-netfilter' })];
    expect(await orch.appliedAsPlanned(...all)).toEqual([
      ['dummy', 'create', 'options,loaded,at_boot'],
      ['br_netfilter', 'create', 'loaded,at_boot'],
    ]);
    expect(await run('tail -qn 1 /sys/module/dummy/options /etc/modules-load.d/orch-*')).toBe(
      'options dummy numdummies=2\nbr_netfilter\ndummy',
    );
    await orch.isSettled();
    await run('rm -r /sys/module/dummy; echo x >/etc/modules-load.d/orch-br_netfilter.conf');
    expect(await orch.differences('drift')).toEqual([
      ['dummy', 'update', 'loaded'],
      ['br_netfilter', 'update', 'at_boot'],
    ]);
    expect(failures(await orch.apply())).toEqual({});
    await orch.isSettled();
    expect(await orch.applied(module({ name: 'nothing' }), module({ name: 'fixed' }))).toMatchObject({
      nothing:
        'value_unknown: the kernel of this machine has no module nothing; correct the name, or install the package that brings it',
      fixed:
        'permission_denied: the kernel lets no module be loaded here, as in a container or without root; load fixed on the host',
    });
    const eve = new LocalOrch(host, '/home/eve/site.orch.yaml', 'eve');
    await eve.declare(module({ name: 'fixed' }), module({ name: 'dummy', options: 'numdummies=3' }));
    expect(failures(await eve.apply())).toEqual({
      fixed: expect.stringMatching(/^permission_denied: /),
      dummy: expect.stringMatching(/^permission_denied: /),
    });
    expect(await orch.applied(kept)).toEqual({});
    expect(await run('ls /sys/module; ls /etc/modules-load.d /etc/modprobe.d | grep orch; true')).toBe(
      'br_netfilter\ndummy',
    );
    await orch.isSettled();
  });
});
