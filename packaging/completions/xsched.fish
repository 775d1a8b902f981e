# fish completion for xsched and xcli
for name in xsched xcli
    complete -c $name -n __fish_use_subcommand -f -a 'run top list hint policy config doctor demo plan'
    complete -c $name -n '__fish_seen_subcommand_from run' -l priority -x
    complete -c $name -n '__fish_seen_subcommand_from run' -l utilization -x
    complete -c $name -n '__fish_seen_subcommand_from run' -l level -x -a '1 2 3'
    complete -c $name -n '__fish_seen_subcommand_from run' -l policy -x -a 'HPF UP'
    complete -c $name -n '__fish_seen_subcommand_from run' -l scheduler -x -a 'GLB LCL APP'
    complete -c $name -n '__fish_seen_subcommand_from run' -l route -x -a 'layer preload'
    complete -c $name -n '__fish_seen_subcommand_from list' -l json
    complete -c $name -n '__fish_seen_subcommand_from list' -l mine
    complete -c $name -n '__fish_seen_subcommand_from hint' -l queue -x
    complete -c $name -n '__fish_seen_subcommand_from hint' -l pid -x -a '(__fish_complete_pids)'
    complete -c $name -n '__fish_seen_subcommand_from policy' -f -a 'show list set'
    complete -c $name -n '__fish_seen_subcommand_from config' -f -a 'get set'
    complete -c $name -n '__fish_seen_subcommand_from top' -l batch
    complete -c $name -n '__fish_seen_subcommand_from demo' -l seconds -x
    for option in stage only seconds within
        complete -c $name -n '__fish_seen_subcommand_from plan' -l $option -x
    end
    complete -c $name -n '__fish_seen_subcommand_from plan' -l platform -x -a 'cuda hip'
    complete -c $name -n '__fish_seen_subcommand_from plan' -l out -x -a '(__fish_complete_directories)'
    complete -c $name -n '__fish_seen_subcommand_from plan' -l list
    complete -c $name -n '__fish_seen_subcommand_from plan' -l quick
end
