# At installation: the tools' own names, as relative links to the executable, and their completions.
foreach(directory command_dir executable_dir bash_dir fish_dir)
  cmake_path(ABSOLUTE_PATH ${directory} BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" NORMALIZE)
endforeach()

function(link name target directory)
  set(path "$ENV{DESTDIR}${directory}/${name}")
  # What another package has put there is not ours to replace.
  if(EXISTS "${path}" AND NOT IS_SYMLINK "${path}")
    message(FATAL_ERROR "${path} is there, and no link: choose another CORETAP_COMMAND_DIR or CORETAP_COMMAND_PREFIX")
  endif()
  file(MAKE_DIRECTORY "$ENV{DESTDIR}${directory}")
  file(CREATE_LINK "${target}" "${path}" SYMBOLIC)
  set(CMAKE_INSTALL_MANIFEST_FILES ${CMAKE_INSTALL_MANIFEST_FILES} "${directory}/${name}" PARENT_SCOPE)
endfunction()

cmake_path(RELATIVE_PATH executable_dir BASE_DIRECTORY "${command_dir}" OUTPUT_VARIABLE way)
cmake_path(APPEND way coretap)
cmake_path(NORMAL_PATH way)
message(STATUS "Names of tools: $ENV{DESTDIR}${command_dir}")
foreach(name ${names})
  link(${name} "${way}" "${command_dir}")
  if(own_names)  # bash and fish find a completion by the command's name
    link(${name} coretap "${bash_dir}")
    link(${name}.fish coretap.fish "${fish_dir}")
  endif()
endforeach()
