import { arch, cpus, hostname, release, totalmem } from 'node:os';
import { describe, expect, it } from 'vitest';
import { parseOsRelease, readFacts } from '../../src/agent/facts.js';
import { validator } from '../../src/kernel/validator.js';
import { AttributesSchema } from '../../src/wire/messages.js';

describe('the facts of this machine', () => {
  it('are what the system says, in a form that the link takes', () => {
    const facts = readFacts();
    expect(validator(AttributesSchema).problems(facts)).toEqual([]);
    expect(facts).toMatchObject({
      hostname: hostname(),
      kernel: release(),
      cpus: String(cpus().length),
      memory_bytes: String(totalmem()),
    });
    if (arch() === 'x64') expect(facts.arch).toBe('x86_64');
    if (process.platform === 'linux') expect(facts.platform).toBe('linux');
    expect(readFacts('given')).toMatchObject({ hostname: 'given' });
    expect(readFacts('x'.repeat(300)).hostname).toHaveLength(256);
  });
});

describe('os-release', () => {
  it.each<[string, string, string | undefined, string | undefined]>([
    ['Debian', 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n', 'debian', '12'],
    ['Ubuntu', 'NAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\nID_LIKE=debian\n', 'ubuntu', '24.04'],
    ['Alpine', 'NAME="Alpine Linux"\nID=alpine\nVERSION_ID=3.20.1\n', 'alpine', '3.20.1'],
    ['a rolling one', 'NAME="Arch Linux"\nID=arch\nBUILD_ID=rolling\n', 'arch', undefined],
    ['single quotes', "ID='rocky'\nVERSION_ID='9.4'\n", 'rocky', '9.4'],
    ['escapes and comments', '# ID=no\n\n ID="a\\"b\\\\c"\nVERSION_ID=\nbroken\n', 'a"b\\c', ''],
    ['nothing', '', undefined, undefined],
  ])('of %s', (_, text, id, version) => {
    const values = parseOsRelease(text);
    expect([values.get('ID'), values.get('VERSION_ID')]).toEqual([id, version]);
  });
});
