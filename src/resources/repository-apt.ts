/** `repository-apt`: a repository of packages in `/etc/apt/sources.list.d`, with the key that signs it. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import type { RunStep } from './host.js';
import type { BodyProblem } from './kind.js';
import { defineRepository } from './packages/repository.js';
import { keyFields } from './packages/repository-key.js';

const words = (pattern: string, description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 1024, pattern }), { minItems: 1, maxItems: 64, description });

const schema = closed({
  name: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$',
    description: 'Name of the file in /etc/apt/sources.list.d, without its ending',
  }),
  uris: words('^[!-~]+$', 'Addresses of the repository; with several, each has the same packages'),
  suites: words('^[A-Za-z0-9./][A-Za-z0-9._+~/-]*$', 'Suites such as "bookworm", or paths that end in "/"'),
  components: optional(words('^[A-Za-z0-9][A-Za-z0-9._+~/-]*$', 'Components such as "main"; none for paths')),
  types: optional(
    Type.Array(Type.Enum(['deb', 'deb-src']), {
      minItems: 1,
      maxItems: 2,
      description: 'Packages (deb), their sources (deb-src), or both',
    }),
  ),
  architectures: optional(
    words('^[a-z0-9][a-z0-9-]*$', 'Architectures such as "amd64"; those of the machine unless given'),
  ),
  enabled: optional(Type.Boolean({ description: 'False: the file is there, and apt does not use it' })),
  ...keyFields,
  key_format: optional(
    Type.Enum(['armoured', 'binary'], {
      description: 'Format of the file at `key_url`; by its ending unless given: binary for .gpg, else armoured',
    }),
  ),
});

type AptRepository = Type.Static<typeof schema>;

const DIRECTORY = '/etc/apt/sources.list.d';
const KEYS = '/etc/apt/keyrings';

/** Returns the file that defines a repository. */
const sourcesFile = (name: string): string => `${DIRECTORY}/${name}.sources`;

/** apt tells the format of a key by the ending of its file. */
const keyFiles = (name: string): readonly string[] => [`${KEYS}/${name}.asc`, `${KEYS}/${name}.gpg`];

/** Returns all files that a repository of a name may have. */
export const aptRepositoryFiles = (name: string): readonly string[] => [sourcesFile(name), ...keyFiles(name)];

export const repositoryApt = defineRepository<AptRepository>({
  kind: 'repository-apt',
  manager: 'apt',
  schema,
  members: Object.keys(schema.properties) as (keyof AptRepository)[],
  check: checkRepository,
  fileOf: sourcesFile,
  contentOf,
  keyFiles,
  keyFileOf: ({ name, key_url, key_format }) => {
    const isBinary = key_format == null ? /\.gpg$/i.test(key_url ?? '') : key_format === 'binary';
    return `${KEYS}/${name}.${isBinary ? 'gpg' : 'asc'}`;
  },
  sources: { files: ['/etc/apt/sources.list'], directory: DIRECTORY, endings: /\.(?:list|sources)$/ },
  proof,
});

const MARKER = '# Managed by orch: what is changed here by hand will be undone.';

function contentOf(body: AptRepository, key: string | null): string {
  const fields = {
    Enabled: body.enabled === false ? ['no'] : null,
    Types: body.types ?? ['deb'],
    URIs: body.uris,
    Suites: body.suites,
    Components: body.components,
    Architectures: body.architectures,
    'Signed-By': key === null ? null : [key],
    Trusted: body.trusted === true ? ['yes'] : null,
  };
  const lines = Object.entries(fields).flatMap(([name, values]) =>
    values == null ? [] : [`${name}: ${values.join(' ')}\n`],
  );
  return `${MARKER}\n${lines.join('')}`;
}

/**
 * Reads one repository before its file is put into place: first whether all sources agree about it, which apt otherwise refuses to
 * read at all, then its index. A component or suite that it lacks is only a warning to apt. Waits for another refresh like that of packages. Arguments: file name, a new key
 * that goes again on a failure or nothing, and a file with the content.
 */
const PROOF = `dir=$(mktemp -d) || exit 1
trap 'status=$?; rm -rf "$dir"; [ "$status" -eq 0 ] || [ -z "$2" ] || rm -f "$2"; exit "$status"' EXIT
for file in ${DIRECTORY}/*.list ${DIRECTORY}/*.sources; do
  [ "$file" = "${DIRECTORY}/$1" ] || [ ! -f "$file" ] || cp "$file" "$dir" || exit 1
done
cp "$3" "$dir/$1" || exit 1
apt-get indextargets -o Dir::Etc::SourceParts="$dir" >/dev/null || exit 1
tries=0
while :; do
  said=$(apt-get update -q -o Dir::Etc::SourceList="$dir/$1" -o Dir::Etc::SourceParts=- \\
    -o APT::Get::List-Cleanup=0 -o APT::Update::Error-Mode=any 2>&1)
  status=$?
  tries=$((tries + 1))
  case $said in
    *'13: Permission denied'*) break ;;
    *'Could not get lock'* | *'Unable to lock'*) [ "$tries" -lt 25 ] || break ;;
    *) break ;;
  esac
  sleep 5
done
case $said in *misspelt*) status=100 ;; esac
printf '%s\\n' "$said" >&2
exit "$status"`;

function proof(name: string, content: string, newKey: string | null): RunStep {
  return {
    do: 'run',
    command: {
      argv: ['sh', '-c', PROOF, 'sh', `${name}.sources`, newKey ?? ''],
      script: { text: content, suffix: '.sources' },
      env: { DEBIAN_FRONTEND: 'noninteractive' },
      timeoutSecs: 600,
    },
  };
}

const SCHEME = /^(?:(?:mirror\+|tor\+)?https?|mirror\+file|file|copy):\/{0,2}[^/]*/i;

function checkRepository({ uris, suites, components, key_url, key_format }: Partial<AptRepository>) {
  const problems: BodyProblem[] = [];
  for (const [at, uri] of (uris ?? []).entries()) {
    const [authority] = SCHEME.exec(uri) ?? [];
    if (authority === undefined) {
      problems.push({
        path: `/uris/${at}`,
        message: 'a uri must begin with https://, http://, file:/ or mirror+https://',
      });
    } else if (authority.includes('@')) {
      const message =
        'a uri must hold no user and password, which plans would show; put them into /etc/apt/auth.conf.d';
      problems.push({ path: `/uris/${at}`, message });
    }
  }
  const paths = (suites ?? []).filter((suite) => suite.endsWith('/'));
  if (paths.length > 0 && components != null) {
    problems.push({ path: '/components', message: `components have no meaning for ${paths[0]}, which is a path` });
  }
  if (suites !== undefined && paths.length < suites.length && components == null) {
    const suite = suites.find((one) => !one.endsWith('/'));
    const message = `the suite ${suite} needs components, such as [main]; a path instead of a suite ends in "/"`;
    problems.push({ path: '/suites', message });
  }
  if (key_format != null && key_url == null) {
    problems.push({ path: '/key_format', message: 'key_format is for key_url; a key that is text is armoured' });
  }
  return problems;
}
