import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AccountFiles, parseAccounts } from '../../../src/agent/host/accounts.js';
import { place } from '../../support/agent.js';

const PASSWD = `root:x:0:0:root:/root:/bin/bash
www-data:x:33:33::/var/www:/usr/sbin/nologin
admin:x:0:0:second name of root:/root:/bin/sh
1234:x:99:99::/:/bin/false
broken
:x:7:7::/:
huge:x:4294967295:1::/:
+nis::::::
`;

describe('accounts', () => {
  const accounts = parseAccounts(PASSWD, 'root:x:0:\nadm:x:4:syslog,ubuntu\n');

  it('finds names and digits, names first', () => {
    expect(accounts.uid('www-data')).toBe(33);
    expect(accounts.uid('33')).toBe(33);
    expect(accounts.uid('1234')).toBe(99);
    expect(accounts.gid('adm')).toBe(4);
    expect(accounts.gid('4000')).toBe(4000);
  });

  it('knows no other names, and no number that means "leave it" to the system', () => {
    for (const name of [
      'nobody',
      '',
      'broken',
      'huge',
      '+nis',
      '-1',
      '4294967295',
      '99999999999',
      '0x21',
      '1e3',
      ' 1',
    ]) {
      expect(accounts.uid(name)).toBeUndefined();
    }
    expect(accounts.uid('4294967294')).toBe(4_294_967_294);
  });

  it('names numbers, by the first name that has it', () => {
    expect([accounts.userName(0), accounts.userName(33), accounts.userName(5)]).toEqual(['root', 'www-data', '5']);
    expect([accounts.groupName(4), accounts.groupName(33)]).toEqual(['adm', '33']);
  });

  it('are read again when a file has changed, and do without files', () => {
    const root = `${place()}/`;
    const files = new AccountFiles(root);
    expect(files.read().uid('web')).toBeUndefined();
    mkdirSync(join(root, 'etc'));
    writeFileSync(join(root, 'etc/passwd'), 'web:x:1000:1000::/:/bin/sh\n');
    const first = files.read();
    expect(first.uid('web')).toBe(1000);
    expect(files.read()).toBe(first);
    writeFileSync(join(root, 'etc/group'), 'web:x:1001:\n');
    expect(files.read().gid('web')).toBe(1001);
  });
});
