/** Installs the package of a file with its manager, once the file has proved to be the declared package. */
import type { Command, CommandRefusal, CommandResult } from '../command.js';
import { exitedWith } from '../command.js';
import type { RunStep, SourceFile } from '../host.js';

/** Status of a file that is another package, or none. */
const UNSUITABLE = 65;

/**
 * Takes the copy of the file out of the agent's reach first, because an installation goes on when the agent stops, and the agent
 * removes its copies then. Arguments: the copy, and the wanted name, version and architecture, empty for any version and for the
 * architecture of the machine. They are followed by the command that installs the file.
 */
const script = ({ ending, read }: FileFormat): string => `dir=$(mktemp -d /var/tmp/orch-package-XXXXXXXXXX) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 143' TERM INT HUP
file=$dir/package.${ending}
mv "$1" "$file" || exit 1
refuse() {
  echo "orch: $1" >&2
  exit ${UNSUITABLE}
}
${read}
[ "$name" = "$2" ] && [ -n "$is_version" ] && [ -n "$is_architecture" ] ||
  refuse "the file is the package $name in version $version for $architecture"
shift 4
"$@" "$file"`;

interface FileFormat {
  /** Ending of the file's name, which managers need. */
  readonly ending: string;
  /**
   * Lines of shell that read `$file` and set `name`, `version` and `architecture`, and that set `is_version` and
   * `is_architecture` to any text if they are the wanted ones. They must not hold the word for the path of the copy.
   */
  readonly read: string;
}

/** A `.deb`. Packages for all architectures fit where that of the machine is wanted. */
export const DEB: FileFormat = {
  ending: 'deb',
  read: `found=$(dpkg-deb --show --showformat='\${Package} \${Version} \${Architecture}' "$file") ||
  refuse 'dpkg-deb cannot read the file as a package'
name=\${found%% *}
rest=\${found#* }
version=\${rest%% *}
architecture=\${rest#* }
native=$(dpkg --print-architecture) || exit 1
[ -n "$3" ] && [ "$version" != "$3" ] && is_version= || is_version=yes
is_architecture=
[ "$architecture" != "\${4:-$native}" ] || is_architecture=yes
[ "$architecture" != all ] || [ "\${4:-$native}" != "$native" ] || is_architecture=yes`,
};

/** A `.rpm`. The signature is the business of dnf; a source package has no architecture of its own. */
export const RPM: FileFormat = {
  ending: 'rpm',
  read: `found=$(rpm --query --package --nosignature --queryformat \\
  '%{NAME} %|EPOCH?{%{EPOCH}}:{0}| %{VERSION} %{RELEASE} %|SOURCERPM?{%{ARCH}}:{src}|' "$file") ||
  refuse 'rpm cannot read the file as a package'
read -r name epoch plain release architecture <<END
$found
END
version=$plain-$release
[ "$epoch" = 0 ] || version=$epoch:$version
is_version=
case $3 in
  '' | "$plain" | "$plain-$release" | "$epoch:$plain" | "$epoch:$plain-$release") is_version=yes ;;
esac
is_architecture=
case $architecture in
  noarch) [ -n "$4" ] && [ "$4" != noarch ] || is_architecture=yes ;;
  *) [ "$architecture" != "\${4:-$(uname -m)}" ] || is_architecture=yes ;;
esac`,
};

interface WantedFile {
  /** Name without the architecture. */
  readonly name: string;
  readonly architecture: string | null;
  /** Null for any. */
  readonly version: string | null;
  readonly file: SourceFile;
}

/** Returns the step that installs a file. @param install command that takes the path of the file as its last argument */
export function fileStep(format: FileFormat, wanted: WantedFile, install: Command): RunStep {
  const { name, architecture, version, file } = wanted;
  const given = [name, version ?? '', architecture ?? ''];
  return {
    do: 'run',
    command: { ...install, argv: ['sh', '-c', script(format), 'sh', '%s', ...given, ...install.argv] },
    checks: {
      path: `${name}.${format.ending}`,
      content: file,
      owner: null,
      group: null,
      mode: 0o600,
      isPrivate: true,
    },
  };
}

/** Returns the version that a step installs from a file, empty for any; null for a step without one. */
export const versionOfFile = ({ command: { argv }, checks }: RunStep): string | null =>
  checks === undefined ? null : (argv[6] ?? '');

/** Returns the refusal for a file that is another package, or none; null for other results. */
export function unsuitableFile(name: string, result: CommandResult): CommandRefusal | null {
  const [, said] = /^orch: (.*)$/m.exec(result.stderr) ?? [];
  if (said === undefined || !exitedWith(result, UNSUITABLE)) return null;
  const mend = 'declare the package, version and architecture of the file, or give another file';
  return { code: 'content_unsuitable', message: `${name} is not installed: ${said}; ${mend}` };
}
