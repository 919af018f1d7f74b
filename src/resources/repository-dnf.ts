/** `repository-dnf`: a repository of packages in `/etc/yum.repos.d`, with the key that signs its packages. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import type { RunStep } from './host.js';
import type { BodyProblem } from './kind.js';
import { defineRepository } from './packages/repository.js';
import { keyFields } from './packages/repository-key.js';

const Address = Type.String({ minLength: 1, maxLength: 1024, pattern: '^[!-~]+$' });

const schema = closed({
  name: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$',
    description: 'Id of the repository, and name of its file in /etc/yum.repos.d, without the ending',
  }),
  description: optional(
    Type.String({
      minLength: 1,
      maxLength: 256,
      pattern: '^[^\\u0000-\\u001f\\u007f]*$',
      description: 'Name for people; the id unless given',
    }),
  ),
  baseurl: optional(
    Type.Array(Address, {
      minItems: 1,
      maxItems: 16,
      description: 'Addresses of the repository, each with its repodata',
    }),
  ),
  metalink: optional(
    Type.String({
      minLength: 1,
      maxLength: 1024,
      pattern: '^[!-~]+$',
      description: 'Address of a list of mirrors with sums',
    }),
  ),
  mirrorlist: optional(
    Type.String({ minLength: 1, maxLength: 1024, pattern: '^[!-~]+$', description: 'Address of a list of mirrors' }),
  ),
  enabled: optional(Type.Boolean({ description: 'False: the file is there, and dnf does not use it' })),
  repo_gpgcheck: optional(
    Type.Boolean({ description: 'True: its index has to be signed as well; null: as dnf.conf says' }),
  ),
  priority: optional(
    Type.Integer({ minimum: 1, maximum: 99, description: 'A lower number is preferred; that of dnf is 99' }),
  ),
  ...keyFields,
});

type DnfRepository = Type.Static<typeof schema>;

const DIRECTORY = '/etc/yum.repos.d';

/** Returns the file that defines a repository. */
const repoFile = (name: string): string => `${DIRECTORY}/${name}.repo`;
const keyFile = (name: string): string => `/etc/pki/rpm-gpg/RPM-GPG-KEY-${name}`;

/** Returns all files that a repository of a name may have. */
export const dnfRepositoryFiles = (name: string): readonly string[] => [repoFile(name), keyFile(name)];

export const repositoryDnf = defineRepository<DnfRepository>({
  kind: 'repository-dnf',
  manager: 'dnf',
  schema,
  members: Object.keys(schema.properties) as (keyof DnfRepository)[],
  check: checkRepository,
  fileOf: repoFile,
  contentOf,
  keyFiles: (name) => [keyFile(name)],
  keyFileOf: ({ name }) => keyFile(name),
  sources: { files: ['/etc/dnf/dnf.conf'], directory: DIRECTORY, endings: /\.repo$/ },
  proof,
});

const MARKER = '# Managed by orch: what is changed here by hand will be undone.';

function contentOf(body: DnfRepository, key: string | null): string {
  const yes = (value: boolean) => (value ? '1' : '0');
  const fields = {
    name: body.description ?? body.name,
    baseurl: body.baseurl?.join(' '),
    metalink: body.metalink,
    mirrorlist: body.mirrorlist,
    enabled: yes(body.enabled !== false),
    gpgcheck: yes(body.trusted !== true),
    repo_gpgcheck: body.repo_gpgcheck == null ? null : yes(body.repo_gpgcheck),
    gpgkey: key === null ? null : `file://${key}`,
    priority: body.priority,
  };
  const lines = Object.entries(fields).flatMap(([name, value]) => (value == null ? [] : [`${name}=${value}\n`]));
  return `${MARKER}\n[${body.name}]\n${lines.join('')}`;
}

/**
 * Reads one repository before its file is put into place. Waits for another dnf, which ends with 200 while its lock is held.
 * Arguments: id, a new key that goes again on a failure or nothing, and a file with the content.
 */
const PROOF = `dir=$(mktemp -d) || exit 1
trap 'status=$?; rm -rf "$dir"; [ "$status" -eq 0 ] || [ -z "$2" ] || rm -f "$2"; exit "$status"' EXIT
cp "$3" "$dir/$1.repo" || exit 1
tries=0
while :; do
  dnf -y -q --setopt=reposdir="$dir" --setopt=skip_if_unavailable=False --setopt=exit_on_lock=True makecache --refresh
  status=$?
  tries=$((tries + 1))
  [ "$status" -eq 200 ] && [ "$tries" -lt 60 ] || break
  sleep 2
done
exit "$status"`;

function proof(name: string, content: string, newKey: string | null): RunStep {
  return {
    do: 'run',
    command: {
      argv: ['sh', '-c', PROOF, 'sh', name, newKey ?? ''],
      script: { text: content, suffix: '.repo' },
      timeoutSecs: 600,
    },
  };
}

function checkRepository({ name, baseurl, metalink, mirrorlist, trusted, repo_gpgcheck }: Partial<DnfRepository>) {
  const problems: BodyProblem[] = [];
  const addresses = [
    ...(baseurl ?? []).map((url, at) => [`/baseurl/${at}`, url] as const),
    ...(metalink == null ? [] : [['/metalink', metalink] as const]),
    ...(mirrorlist == null ? [] : [['/mirrorlist', mirrorlist] as const]),
  ];
  if (name === 'main') problems.push({ path: '/name', message: 'name must not be "main", which is dnf itself' });
  if (addresses.length === 0) {
    problems.push({ path: '', message: 'a repository needs "baseurl", "metalink" or "mirrorlist"' });
  }
  if (metalink != null && mirrorlist != null) {
    problems.push({ path: '/mirrorlist', message: 'metalink and mirrorlist exclude each other' });
  }
  for (const [path, url] of addresses) {
    const [, authority] = /^(?:https?:\/\/|file:\/\/)([^/]*)/i.exec(url) ?? [];
    if (authority === undefined) {
      problems.push({ path, message: 'an address must begin with https://, http:// or file:///' });
    } else if (authority.includes('@')) {
      problems.push({ path, message: 'an address must hold no user and password, which plans would show' });
    }
  }
  if (trusted === true && repo_gpgcheck === true) {
    problems.push({ path: '/repo_gpgcheck', message: 'repo_gpgcheck needs a key, which trusted: true does without' });
  }
  return problems;
}
