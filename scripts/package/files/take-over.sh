# The package that is installed last wins over a release in /opt/orch: its link goes, and units that named it use the package.
rm -f /opt/orch/current
# The trial of another release ends. It may just have stopped the agent.
trial=/etc/systemd/system/orch-agent-upgrade.service
agent_verb=try-restart
if [ -f "$trial" ]; then
  agent_verb=restart
  [ ! -d /run/systemd/system ] || systemctl disable --now --quiet orch-agent-upgrade.service || true
  rm -f "$trial"
fi
[ "$(readlink /usr/local/bin/orch)" != /opt/orch/current/bin/orch ] || rm -f /usr/local/bin/orch
for unit in /etc/systemd/system/orch-serve.service /etc/systemd/system/orch-agent.service; do
  [ ! -f "$unit" ] || sed -i 's|^ExecStart=/opt/orch/current/bin/orch |ExecStart=/usr/bin/orch |' "$unit"
done

# Restarts the services that run. When a service installs its own package, as the agent does for a module, a restart would end the
# package manager and this script with it. Then a unit of its own waits for the package manager to end.
restart_services() {
  systemctl daemon-reload
  for unit in orch-serve.service orch-agent.service; do
    verb=try-restart
    [ "$unit" != orch-agent.service ] || verb=$agent_verb
    if grep -q "/$unit" /proc/self/cgroup; then
      manager=$PPID
      ancestor=$PPID
      while [ "$ancestor" -gt 1 ]; do
        case $(cat "/proc/$ancestor/comm") in apt* | aptitude | dpkg* | rpm | dnf* | microdnf | yum* | zypper) manager=$ancestor ;; esac
        ancestor=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$ancestor/status")
      done
      systemd-run --quiet --collect sh -c "tail --pid=$manager -f /dev/null; exec systemctl $verb $unit" ||
        echo "orch: restart $unit yourself, to run the new version"
    else
      systemctl "$verb" "$unit" || echo "orch: restart $unit yourself, to run the new version"
    fi
  done
}
