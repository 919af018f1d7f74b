/** The completion script of each shell: they ask `orch __complete` and show what it says. */

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

export const shellScript = (shell: Shell): string => SCRIPTS[shell];

const bash = `# bash completion of orch
_orch() {
  local cur words cword IFS=$'\\n'
  words=("\${COMP_WORDS[@]:0:COMP_CWORD+1}")
  cur="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  local line
  for line in $(orch __complete --no-color -- "\${words[@]:1}" 2>/dev/null </dev/null); do
    if [ "$line" = ":file" ]; then
      compopt -o filenames 2>/dev/null
      COMPREPLY+=($(compgen -f -- "$cur"))
    else
      COMPREPLY+=("\${line%% *}")
    fi
  done
}
complete -F _orch orch
`;

const zsh = `#compdef orch
# zsh completion of orch
_orch() {
  local -a described
  local line files=0
  for line in "\${(@f)$(orch __complete --no-color -- "\${words[@]:1:$((CURRENT-1))}" 2>/dev/null </dev/null)}"; do
    if [[ "$line" == ":file" ]]; then
      files=1
    elif [[ -n "$line" ]]; then
      described+=("\${\${line%% *}//:/\\\\:}:\${line#* }")
    fi
  done
  (( \${#described} )) && _describe -V orch described
  (( files )) && _files
}
if [ "$funcstack[1]" = "_orch" ]; then
  _orch "$@"
else
  compdef _orch orch
fi
`;

const fish = `# fish completion of orch
function __orch_complete
  set -l words (commandline -opc) (commandline -ct)
  for line in (orch __complete --no-color -- $words[2..-1] 2>/dev/null </dev/null)
    if test "$line" = ":file"
      __fish_complete_path (commandline -ct)
    else
      string replace ' ' \\t -- $line
    end
  end
end
complete -c orch -f -a '(__orch_complete)'
`;

const SCRIPTS: Readonly<Record<Shell, string>> = { bash, zsh, fish };
