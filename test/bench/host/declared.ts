/** The 50 resources of a typical host, in the languages of the measured programs. */
import { stringify } from 'yaml';
import { cfengineText } from '../peers.js';

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);

const DIRECTORIES = range(10).map((index) => `/srv/typical-${index}`);
const FILES = range(20).map((index) => ({
  path: `/srv/typical-${index % 10}/file-${index}`,
  content: `# file ${index}\n`.repeat(20),
}));
const GROUPS = range(5).map((index) => ({ name: `group${index}`, gid: 3_000 + index }));
const USERS = range(5).map((index) => ({
  name: `user${index}`,
  uid: 3_000 + index,
  home: `/home/user${index}`,
  shell: '/bin/sh',
}));
/** Installed packages that are declared. */
export const PACKAGES = 5;
/** Units that run on every booted machine. */
const SERVICES = ['systemd-journald', 'dbus', 'systemd-logind', 'systemd-user-sessions', 'systemd-tmpfiles-setup'];

export function moduleText(packages: readonly string[]): string {
  const account = { owner: 'root', group: 'root' };
  const resources = [
    ...DIRECTORIES.map((path) => ({ 'directory-unix': { path, ...account, mode: '0755' } })),
    ...FILES.map((file) => ({ 'file-unix': { ...file, ...account, mode: '0644' } })),
    ...GROUPS.map((group) => ({ 'group-unix': group })),
    ...USERS.map((user) => ({ 'user-unix': user })),
    ...packages.map((name) => ({ 'package-apt': { name } })),
    ...SERVICES.map((name) => ({ 'service-systemd': { name, running: true } })),
  ];
  return stringify({
    name: 'typical',
    supports: [{ platform: 'linux' }],
    resources: resources.map((resource) => ({ resource })),
  });
}

/** Follows the manual of CFEngine: its standard library, and its module for apt. */
export function cfenginePolicy(packages: readonly string[]): string {
  return `
body common control
{
  bundlesequence => { "main" };
  inputs => { "$(sys.inputdir)/lib/stdlib.cf" };
}
body perms as(mode)
{
  owners => { "root" };
  groups => { "root" };
  mode => "$(mode)";
  rxdirs => "false";
}
bundle agent main
{
  files:
${DIRECTORIES.map((path) => `    ${cfengineText(`${path}/.`)} create => "true", perms => as("755");`).join('\n')}
${FILES.map(({ path, content }) => `    ${cfengineText(path)} create => "true", content => ${cfengineText(content)}, perms => as("644");`).join('\n')}
  users:
${USERS.map(({ name, uid, home, shell }) => `    "${name}" policy => "present", uid => "${uid}", home_dir => "${home}", shell => "${shell}";`).join('\n')}
  packages:
${packages.map((name) => `    "${name}" policy => "present", package_module => apt_get;`).join('\n')}
  services:
${SERVICES.map((name) => `    "${name}" service_policy => "active";`).join('\n')}
  commands:
${GROUPS.map(({ name, gid }) => `    "/usr/sbin/groupadd --gid ${gid} ${name}" unless => groupexists("${name}");`).join('\n')}
}
`;
}

/** Returns the limit program in Node: it runs two commands and reads the accounts and the files. */
export function nodeLimit(packages: readonly string[]): string {
  const files = FILES.map(({ path }) => path);
  return `
import { execFileSync } from 'node:child_process';
import { lstatSync, readFileSync } from 'node:fs';
for (const path of ${JSON.stringify(files)}) readFileSync(path);
for (const path of ${JSON.stringify([...DIRECTORIES, ...files])}) lstatSync(path);
for (const path of ['/etc/passwd', '/etc/group']) readFileSync(path);
execFileSync('dpkg-query', ['--show', ...${JSON.stringify(packages)}]);
execFileSync('systemctl', ['show', ...${JSON.stringify(SERVICES)}]);
`;
}
