/** The accounts of macOS as its local directory tells them, in the form of `test/resources/unix-accounts.test.ts`. */
import { expect, it } from 'vitest';
import { AccountFiles, MacAccountRecords } from '../../../src/agent/host/accounts.js';
import type { Command } from '../../../src/resources/command.js';
import { place } from '../../support/agent.js';

const record = (values: Readonly<Record<string, string>>): string => {
  const members = Object.entries(values).map(
    ([name, value]) => `<key>dsAttrTypeStandard:${name}</key><array><string>${value}</string></array>`,
  );
  return `<dict>${members.join('')}</dict>`;
};
const plist = (...records: readonly string[]) => `<plist version="1.0"><array>${records.join('')}</array></plist>`;

const USERS = plist(
  record({ RecordName: 'anna', UniqueID: '501' }),
  record({ RecordName: 'nobody', UniqueID: '-2' }),
  record({ RecordName: 'half' }),
  record({ RecordName: 'evil\nroot:*:501', UniqueID: '666' }),
);
const GROUPS = plist(record({ RecordName: 'staff', PrimaryGroupID: '20' }));

const asked: string[] = [];
const ask = ({ argv }: Command): string | null => {
  asked.push(argv.join(' '));
  return argv.includes('/Users') ? USERS : GROUPS;
};

it('asks once until something was run', () => {
  const records = new MacAccountRecords(ask);
  for (let time = 0; time < 3; time += 1) {
    const accounts = records.read();
    expect([accounts.uid('anna'), accounts.uid('nobody'), accounts.gid('staff')]).toEqual([501, 4_294_967_294, 20]);
    expect([accounts.userName(501), accounts.groupName(20), accounts.uid('70')]).toEqual(['anna', 'staff', 70]);
    for (const name of ['half', 'root', 'evil']) expect(accounts.uid(name)).toBeUndefined();
  }
  expect(asked).toHaveLength(2);
  records.forget();
  records.read();
  expect(asked).toHaveLength(4);
});

it('takes the accounts in files when the directory does not answer', () => {
  for (const answer of [null, 'Name: anna', plist().slice(0, -20)]) {
    const records = new MacAccountRecords(() => answer, new AccountFiles(`${place()}/`));
    expect([records.read().uid('anna'), records.read().uid('501')]).toEqual([undefined, 501]);
  }
});
