# Before a package is made of the staged files: what its distribution wants elsewhere, or more of. For
# each package, by its name.
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
set(usr ${root}/usr)
set(docs ${usr}/share/doc/${CPACK_PACKAGE_NAME})
set(from ${CPACK_CORETAP_PACKAGING})
set(mode OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
set(directory_mode ${mode} OWNER_EXECUTE GROUP_EXECUTE WORLD_EXECUTE)
if(CPACK_PACKAGE_NAME STREQUAL "coretap")
  execute_process(COMMAND gzip -9nr ${usr}/share/man COMMAND_ERROR_IS_FATAL ANY)
  # Where `coretap link` records in which directories it made links.
  set(state ${root}/var/lib/coretap)
  file(MAKE_DIRECTORY ${state})
  file(CHMOD ${state} PERMISSIONS ${directory_mode})
endif()
if(CPACK_GENERATOR STREQUAL "DEB")
  file(REMOVE ${docs}/LICENSE)  # copyright has it
  file(COPY ${from}/deb/copyright DESTINATION ${docs} FILE_PERMISSIONS ${mode})
  file(READ ${from}/deb/changelog text)
  string(REGEX REPLACE "(^|\n)coretap " "\\1${CPACK_PACKAGE_NAME} " text "${text}")
  file(WRITE ${docs}/changelog.Debian "${text}")
  file(CHMOD ${docs}/changelog.Debian PERMISSIONS ${mode})
  execute_process(COMMAND gzip -9n ${docs}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
  file(COPY ${from}/deb/overrides/${CPACK_PACKAGE_NAME} DESTINATION ${usr}/share/lintian/overrides
       FILE_PERMISSIONS ${mode} DIRECTORY_PERMISSIONS ${directory_mode})
  if(EXISTS ${usr}/lib/systemd)  # Debian 12 keeps units in /lib
    file(MAKE_DIRECTORY ${root}/lib)
    file(RENAME ${usr}/lib/systemd ${root}/lib/systemd)
    file(REMOVE_RECURSE ${usr}/lib)
    file(CHMOD ${root}/lib PERMISSIONS ${directory_mode})
  endif()
elseif(CPACK_GENERATOR STREQUAL "RPM")
  file(COPY ${docs}/LICENSE DESTINATION ${usr}/share/licenses/${CPACK_PACKAGE_NAME}
       FILE_PERMISSIONS ${mode} DIRECTORY_PERMISSIONS ${directory_mode})
  file(REMOVE ${docs}/LICENSE)
  if(EXISTS ${usr}/share/zsh/vendor-completions)
    file(RENAME ${usr}/share/zsh/vendor-completions ${usr}/share/zsh/site-functions)
  endif()
endif()
# The packages' time, for files that are older too; by itself rpm takes it for those that are newer.
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND find ${root} -exec touch --date=@$ENV{SOURCE_DATE_EPOCH} {} + COMMAND_ERROR_IS_FATAL ANY)
endif()
