/** Keys and kinds from other tools, with their equivalents in the module language. */
import { quoted } from './printable.js';

/** Equivalents by typed key: a key, or advice that begins with a space. */
type KeyAdvice = Readonly<Record<string, string>>;

const THERE =
  ' what a module declares is made so; leave the key out, or write "absent: {KIND: …}" for what is not to be there';
const MADE_OF = ' the text stands in "content", or in a template that "template" names';
const ALL: KeyAdvice = { state: THERE, ensure: THERE, present: THERE };
const DIRECTORY: KeyAdvice = {
  dest: 'path',
  target: 'path',
  name: 'path',
  perm: 'mode',
  perms: 'mode',
  permissions: 'mode',
  user: 'owner',
  recurse: ' each directory and file is a resource of its own',
  recursive: ' each directory and file is a resource of its own',
};
const SENT =
  ' "source" takes a directory beside the module with everything in it, whose owner, group and mode are those of this one';
const TREE: KeyAdvice = {
  ...DIRECTORY,
  src: 'source',
  directory: 'source',
  recurse: SENT,
  recursive: SENT,
  directory_mode: 'mode',
  dir_mode: 'mode',
  filemode: 'file_mode',
  exclusive: 'purge',
  clean: 'purge',
  delete: 'purge',
  force: ' "purge: true" deletes what nothing declares in the directory',
};
const FILE: KeyAdvice = {
  ...DIRECTORY,
  source: MADE_OF,
  src: MADE_OF,
  text: 'content',
  body: 'content',
  data: 'content',
};
const SYMLINK: KeyAdvice = {
  ...DIRECTORY,
  target: 'target',
  src: 'target',
  source: 'target',
  to: 'target',
  mode: ' a link has no mode of its own',
  force: 'replace',
};
const PART: KeyAdvice = {
  dest: 'path',
  file: 'path',
  regex: 'match',
  regexp: 'match',
  pattern: 'match',
  insertafter: 'after',
  insert_after: 'after',
  insertbefore: ' "after" says behind which line it comes',
  block: 'content',
  text: 'content',
  marker: 'name',
  option: 'key',
  parameter: 'key',
  separator: 'format',
  owner: ' the owner of the file stays; a file-unix without content declares it',
  group: ' the group of the file stays; a file-unix without content declares it',
  mode: ' the mode of the file stays; a file-unix without content declares it',
};
const HOST_ENTRY: KeyAdvice = {
  ip: 'addresses',
  address: 'addresses',
  host: 'name',
  hostname: 'name',
  names: 'aliases',
  alias: 'aliases',
  host_aliases: 'aliases',
};
const SYSCTL: KeyAdvice = {
  name: 'key',
  values: ' each setting is a resource of its own, which "for_each" beside "resource" makes of a mapping',
};
const MOUNT: KeyAdvice = {
  device: 'source',
  src: 'source',
  what: 'source',
  spec: 'source',
  fstype: 'type',
  fs: 'type',
  vfstype: 'type',
  opts: 'options',
  where: 'path',
  name: 'path',
  dest: 'path',
  target: 'path',
  mountpoint: 'path',
  mount_point: 'path',
  passno: 'pass',
  fsck: 'pass',
  atboot: ' what is declared is mounted at each start; "options: [noauto]" does without',
  state: 'mounted',
  ensure: 'mounted',
  owner: ' a directory-unix of the same path that is declared after it has the owner of what is mounted',
  group: ' a directory-unix of the same path that is declared after it has the group of what is mounted',
  mode: ' a directory-unix of the same path that is declared after it has the mode of what is mounted',
};
const SYSTEM_NAME: KeyAdvice = {
  hostname: 'name',
  timezone: 'name',
  zone: 'name',
  value: 'name',
  module: 'name',
  params: 'options',
  parameters: 'options',
  locale: 'lang',
  link: 'name',
  target: 'path',
};
const PACKAGE: KeyAdvice = {
  state: ' a package that is declared is installed, and "absent: {KIND: …}" removes one; "version" says which one',
  ensure: ' a package that is declared is installed, and "absent: {KIND: …}" removes one; "version" says which one',
  package: 'name',
  pkg: 'name',
  packages: ' several packages stand in "names", as in names: [curl, git]',
  pkgs: ' several packages stand in "names", as in names: [curl, git]',
  release: 'version',
  held: 'hold',
  pin: 'hold',
  lock: 'hold',
  file: 'source',
  src: 'source',
  path: 'source',
  deb: 'source',
  rpm: 'source',
  checksum: 'sha256',
  sha256sum: 'sha256',
};
const REPOSITORY: KeyAdvice = {
  repo: 'uris',
  uri: 'uris',
  url: 'uris',
  urls: 'uris',
  baseurl: 'uris',
  suite: 'suites',
  distribution: 'suites',
  release: 'suites',
  component: 'components',
  repos: 'components',
  type: 'types',
  architecture: 'architectures',
  arch: 'architectures',
  signed_by: 'key_file',
  keyring: 'key_file',
  gpgkey: 'key_url',
  sha256: 'key_sha256',
  checksum: 'key_sha256',
  filename: 'name',
  disabled: 'enabled',
};
const DNF_REPOSITORY: KeyAdvice = {
  ...REPOSITORY,
  uri: 'baseurl',
  uris: 'baseurl',
  url: 'baseurl',
  urls: 'baseurl',
  baseurl: 'baseurl',
  gpgcheck: ' packages are always checked against the key; "trusted: true" does without',
};
const SERVICE: KeyAdvice = {
  state: 'running',
  ensure: 'running',
  status: 'running',
  started: 'running',
  enable: 'enabled',
  service: 'name',
  unit: 'name',
  exec: 'exec_start',
  command: 'exec_start',
  cmd: 'exec_start',
  env: 'environment',
  cwd: 'working_directory',
  directory: 'working_directory',
  subscribe: 'restart_on',
  notify: ' "restart_on" of the service names the ids of the resources whose change restarts it',
  requires: 'dependencies',
};
const OPENRC: KeyAdvice = {
  ...SERVICE,
  level: 'runlevel',
  runlevels: 'runlevel',
  exec_start: ' a file-unix in /etc/init.d is the script of the service',
  command: ' a file-unix in /etc/init.d is the script of the service',
  masked: ' "enabled: false" takes the service out of all runlevels',
};
const TIMER: KeyAdvice = {
  exec_start: 'command',
  exec: 'command',
  cmd: 'command',
  run: 'command',
  calendar: 'on_calendar',
  schedule: 'on_calendar',
  cron: 'on_calendar',
  interval: 'every',
  on_unit_active_sec: 'every',
  on_boot_sec: 'on_boot',
  randomized_delay_sec: 'randomized_delay',
  delay: 'randomized_delay',
  splay: 'randomized_delay',
  env: 'environment',
  cwd: 'working_directory',
  enabled: ' a timer that is declared starts at boot',
  running: ' a timer that is declared runs',
};
const USER: KeyAdvice = {
  groups: 'additional_groups',
  group: 'primary_group',
  gid: 'primary_group',
  homedir: 'home',
  home_dir: 'home',
  user: 'name',
  username: 'name',
  ssh_authorized_keys: 'authorized_keys',
  ssh_keys: 'authorized_keys',
  password: ' "password_hash" takes a hash, such as "mkpasswd" prints it',
  gecos: 'comment',
  comment: 'full_name',
  full_name: 'comment',
};
const SCRIPT: KeyAdvice = {
  run: 'apply',
  command: 'apply',
  script: 'apply',
  exec: 'apply',
  shell: 'program',
  interpreter: 'program',
  unless: 'check',
  env: 'environment',
  variables: 'environment',
  cwd: 'working_directory',
  chdir: 'working_directory',
  directory: 'working_directory',
  become_user: 'user',
  runas: 'user',
  run_as: 'user',
  onlyif: ' "check" ends with 0 when there is nothing to do',
  trigger: 'rerun_on',
};
const ENTRY: KeyAdvice = {
  remove: 'absent',
  removed: 'absent',
  absence: 'absent',
  missing: 'absent',
  requires: 'depends_on',
  require: 'depends_on',
  needs: 'depends_on',
  after: 'depends_on',
  notify:
    ' the resource that is to react names this one: "restart_on" or "reload_on" of a service, "rerun_on" of a script',
  before: ' the resource that comes later names this one in its "depends_on"',
  tags: ' "supports", "if" or "when" of a variant say for which agents it is, as in if: tags.role == "web"',
  loop: 'for_each',
  with_items: 'for_each',
  with_dict: 'for_each',
  items: 'for_each',
  for: 'for_each',
  each: 'for_each',
  foreach: 'for_each',
  count: ' "for_each" goes over a list or a mapping, so that each resource has a key',
  condition: 'if',
  only_if: 'if',
  onlyif: 'if',
  unless: ' "if" says when the resource is there, such as if: not (tags.role == "web")',
  group: 'resources',
  block: 'resources',
  tasks: 'resources',
};
const GIT: KeyAdvice = {
  repo: 'url',
  repository: 'url',
  remote: 'url',
  source: 'url',
  name: 'url',
  dest: 'path',
  target: 'path',
  branch: 'revision',
  version: 'revision',
  rev: 'revision',
  tag: 'revision',
  commit: 'revision',
  ref: 'revision',
  owner: 'user',
  become_user: 'user',
  recursive: ' submodules are not checked out',
  submodules: ' submodules are not checked out',
  depth: ' the whole history is fetched',
  force: ' local changes are never overwritten; undo them on the machine, or remove the directory',
};
const MODULE: KeyAdvice = {
  tasks: 'resources',
  steps: 'resources',
  states: 'resources',
  resource: 'resources',
  hosts: ' "supports" says which agents a module is for, and an assignment gives it to them',
  targets: ' "supports" says which agents a module is for, and an assignment gives it to them',
  variables: 'inputs',
  vars: 'inputs',
  params: 'inputs',
  parameters: 'inputs',
  defaults: ' "default" of an input is its value for agents that have no other',
  version: ' the orchestrator numbers the revisions of a module itself',
};

const INPUT: KeyAdvice = {
  required: ' an input without a default is required; "optional: true" lets it have no value',
  mandatory: ' an input without a default is required; "optional: true" lets it have no value',
  nullable: 'optional',
  sensitive: 'secret',
  no_log: 'secret',
  choices: 'enum',
  options: 'enum',
  values: 'enum',
  items: 'of',
  elements: 'of',
  value: 'default',
  properties: 'fields',
  attributes: 'fields',
  regex: 'pattern',
  validation: ' "enum", "pattern", "minimum" and "maximum" say which values are possible',
  min: 'minimum',
  max: 'maximum',
  min_length: ' "pattern" says what a text must look like, such as "^.{8,}$"',
  max_length: ' "pattern" says what a text must look like, such as "^.{0,64}$"',
  title: 'description',
};

const KINDS: readonly (readonly [RegExp, KeyAdvice])[] = [
  [/^directory-unix/, TREE],
  [/^directory-/, DIRECTORY],
  [/^file-/, FILE],
  [/^symlink-/, SYMLINK],
  [/^(?:line|block|setting)-/, PART],
  [/^git-/, GIT],
  [/^host-entry-/, HOST_ENTRY],
  [/^sysctl-/, SYSCTL],
  [/^mount-/, MOUNT],
  [/^(?:hostname|timezone|locale|kernel-module|alternatives)-/, SYSTEM_NAME],
  [/^package-/, PACKAGE],
  [/^repository-dnf$/, DNF_REPOSITORY],
  [/^repository-/, REPOSITORY],
  [/^service-openrc$/, OPENRC],
  [/^service-/, SERVICE],
  [/^timer-/, TIMER],
  [/^user-/, USER],
  [/^script$/, SCRIPT],
];

/** Returns advice for an unknown key, such as `; use "mode"`, or an empty text. */
export function keyAdvice(owner: string, key: string, known: readonly string[]): string {
  const word = key.toLowerCase().replaceAll('-', '_');
  const own =
    { module: MODULE, resource: ENTRY, input: INPUT }[owner.toLowerCase()] ??
    KINDS.find(([kinds]) => kinds.test(owner))?.[1];
  const isKind = KINDS.some(([kinds]) => kinds.test(owner));
  const meant = adviceFor(own, word) ?? (isKind ? adviceFor(ALL, word) : undefined);
  if (meant === undefined) return '';
  if (meant.startsWith(' ')) return `;${meant}`;
  return known.includes(meant) ? `; use ${quoted(meant)}` : '';
}

const adviceFor = (map: KeyAdvice | undefined, key: string): string | undefined =>
  map !== undefined && Object.hasOwn(map, key) ? map[key] : undefined;

/** Kinds of other tools, with the family or kind of this language. */
const OTHER_KINDS: Readonly<Record<string, string>> = {
  copy: 'file',
  template: 'file',
  dir: 'directory',
  folder: 'directory',
  link: 'symlink',
  modprobe: 'kernel-module-linux',
  fstab: 'mount-linux',
  mounts: 'mount-linux',
  host: 'host-entry-unix',
  hosts: 'host-entry-unix',
  lineinfile: 'line',
  file_line: 'line',
  blockinfile: 'block',
  ini_file: 'setting',
  ini_setting: 'setting',
  pkg: 'package',
  yum: 'dnf',
  homebrew: 'brew',
  repo: 'repository',
  'apt-repository': 'repository-apt',
  'deb822-repository': 'repository-apt',
  'yum-repository': 'repository-dnf',
  yumrepo: 'repository-dnf',
  chocolatey: 'choco',
  unit: 'systemd',
  daemon: 'service',
  account: 'user',
  shell: 'script',
  command: 'script',
  cmd: 'script',
  exec: 'script',
  bash: 'script',
  powershell: 'script',
};

/** Returns the kinds that an unknown name can mean: `file` means `file-unix` or `file-windows`. */
export function kindsNamed(name: string, kinds: readonly string[]): readonly string[] {
  const word = name.toLowerCase().replaceAll('_', '-');
  const own = Object.hasOwn(OTHER_KINDS, word) ? OTHER_KINDS[word] : word;
  return kinds.filter((kind) => kind === own || kind.split('-').includes(own ?? word));
}
