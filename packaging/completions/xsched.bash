# bash completion for xsched and xcli
_xsched() {
  local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} i
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "run top list hint policy config doctor demo plan --help --version" -- "$cur")
    return
  fi
  for ((i = 2; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      mapfile -t COMPREPLY < <(compgen -c -f -- "$cur")
      return
    fi
  done
  case ${COMP_WORDS[COMP_CWORD - 1]} in
    --policy | set) mapfile -t COMPREPLY < <(compgen -W "HPF UP" -- "$cur"); return ;;
    --scheduler) mapfile -t COMPREPLY < <(compgen -W "GLB LCL APP" -- "$cur"); return ;;
    --route) mapfile -t COMPREPLY < <(compgen -W "layer preload" -- "$cur"); return ;;
    --level) mapfile -t COMPREPLY < <(compgen -W "1 2 3" -- "$cur"); return ;;
    --platform) mapfile -t COMPREPLY < <(compgen -W "cuda hip" -- "$cur"); return ;;
    --out) mapfile -t COMPREPLY < <(compgen -d -- "$cur"); return ;;
  esac
  local words
  case $command in
    run) words="--priority --utilization --deadline-us --laxity-us --level --threshold --batch-size --policy --scheduler --route --no-server --" ;;
    top) words="--delay --count --batch" ;;
    list) words="--json --pid --mine" ;;
    hint) words="--queue --pid --priority --utilization --deadline-us --laxity-us" ;;
    policy) words="show list set --timeslice-us" ;;
    config) words="get set --json --system" ;;
    doctor) words="--json --" ;;
    demo) words="--seconds --ascii --json" ;;
    plan) words="--stage --only --out --list --quick --seconds --within --platform" ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words --help" -- "$cur")
}
complete -F _xsched xsched xcli
