# Writes the manual pages and completions of the program TROUPE into FOLDER, and the file "written" last.
cmake_minimum_required(VERSION 3.24)

file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER}/bash ${FOLDER}/zsh ${FOLDER}/fish)
execute_process(COMMAND ${TROUPE} man --write-to ${FOLDER}/man1 COMMAND_ERROR_IS_FATAL ANY)
foreach(file IN ITEMS bash/troupe zsh/_troupe fish/troupe.fish)
  get_filename_component(shell ${file} DIRECTORY)
  execute_process(COMMAND ${TROUPE} completion ${shell} OUTPUT_FILE ${FOLDER}/${file} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(TOUCH ${FOLDER}/written)
