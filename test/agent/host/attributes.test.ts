/** The attributes of a file beyond owner and mode are still there when its content was replaced. */
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { commitOne, host, isRoot, needs, place, run, succeeds, write } from '../../support/agent.js';

const ACL = 'system.posix_acl_access';
const CAPABILITY = 'security.capability';
/** cap_net_raw=ep */
const NET_RAW = '0100000200200000000000000000000000000000';

type Attributes = Readonly<Record<string, string>>;

/** Python's standard library reads and writes what the tests need; other tools for it are not on every machine. */
function attributesOf(...paths: readonly string[]): readonly Attributes[] {
  return JSON.parse(run('python3', '-c', READ, ...paths).stdout) as readonly Attributes[];
}
const READ = `import os, sys, json
print(json.dumps([{name: os.getxattr(path, name).hex() for name in os.listxattr(path)} for path in sys.argv[1:]]))`;
const SET = `import os, sys
for path in sys.argv[3:]: os.setxattr(path, sys.argv[1], bytes.fromhex(sys.argv[2]) or os.path.basename(path).encode())`;

const entry = (tag: number, permissions: number, id = 0xffffffff): string => {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(tag, 0);
  bytes.writeUInt16LE(permissions, 2);
  bytes.writeUInt32LE(id, 4);
  return bytes.toString('hex');
};
/** user::rw- user:1234:r-- group::r-- mask::r-- other::--- */
const READABLE_FOR_1234 = `02000000${entry(1, 6)}${entry(2, 4, 1234)}${entry(4, 4)}${entry(16, 4)}${entry(32, 0)}`;

/** Files with an access list, and their names in an attribute. */
function withAttributes(context: TestContext, ...files: readonly string[]): void {
  for (const file of files) {
    writeFileSync(file, 'old');
    chmodSync(file, 0o640);
  }
  needs(context, process.platform === 'linux' && succeeds('python3', '-V'), 'python3 on Linux');
  needs(context, succeeds('python3', '-c', SET, 'user.note', '', ...files), 'a file system with extended attributes');
  needs(context, succeeds('python3', '-c', SET, ACL, READABLE_FOR_1234, ...files), 'a file system with access lists');
  needs(context, run('cp', '--version').stdout.includes('GNU'), 'the cp of GNU');
}

describe('a replaced file', () => {
  it('keeps its access list and its attributes', async (context) => {
    const file = join(place(), 'f');
    withAttributes(context, file);
    const before = attributesOf(file);
    const old = statSync(file);
    expect(await commitOne(write(file, 'new'))).toBeNull();
    expect(readFileSync(file, 'utf8')).toBe('new');
    expect(attributesOf(file)).toEqual(before);
    expect(statSync(file).mode).toBe(old.mode);
    // A new content has a new time: tools decide by it what is out of date.
    expect(statSync(file).mtimeMs).toBeGreaterThan(old.mtimeMs);
  });

  it('is not opened by its old access list when it is to be closed', async (context) => {
    const file = join(place(), 'f');
    withAttributes(context, file);
    expect(await commitOne(write(file, 'secret', { mode: 0o600 }))).toBeNull();
    expect(attributesOf(file)).toEqual([{ 'user.note': '66' }]);
    expect(statSync(file).mode & 0o7777).toBe(0o600);
  });

  it('keeps none of them when its owner or group changes, and never a capability', async (context) => {
    needs(context, isRoot, 'root');
    const directory = place();
    const files = ['owner', 'group', 'same'].map((name) => join(directory, name));
    withAttributes(context, ...files);
    needs(context, succeeds('python3', '-c', SET, CAPABILITY, NET_RAW, ...files), 'a file system with capabilities');
    const [owner = '', group = '', same = ''] = files;
    const steps = [write(owner, 'new', { owner: '1234' }), write(group, 'new', { group: '1234' }), write(same, 'new')];
    expect(await host().commit(steps)).toEqual([null, null, null]);
    expect(attributesOf(owner, group, same)).toEqual([
      {},
      {},
      { 'user.note': expect.any(String), [ACL]: READABLE_FOR_1234 },
    ]);
    expect(steps.map(({ path }) => statSync(path).mode & 0o7777)).toEqual([0o640, 0o640, 0o640]);
  });

  it('keeps them in a group, each its own, with one process and no traces', async (context) => {
    const directory = place();
    const names = Array.from({ length: 20 }, (_, index) => `f${index}`);
    const files = names.map((name) => join(directory, name));
    withAttributes(context, ...files);
    const steps = files.map((file, index) => write(file, 'new', index % 2 ? { mode: 0o600 } : {}));
    expect(await host().commit(steps)).toEqual(names.map(() => null));
    for (const [index, { 'user.note': note, [ACL]: list }] of attributesOf(...files).entries()) {
      expect(note).toBe(Buffer.from(`f${index}`).toString('hex'));
      expect(list).toBe(index % 2 ? undefined : READABLE_FOR_1234);
    }
    expect(readdirSync(directory).sort()).toEqual([...names].sort());
  });
});
