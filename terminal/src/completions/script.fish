complete --command PROGRAM --no-files --keep-order --arguments "(VARIABLE=1 PROGRAM (commandline --current-process --tokenize --cut-at-cursor)[2..] (commandline --current-token))"
