# Before a package is made of the staged files: what its distribution wants elsewhere, or more of.
set(usr ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr)
set(from ${CPACK_CORETAP_PACKAGING})
set(mode OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
set(directory_mode ${mode} OWNER_EXECUTE GROUP_EXECUTE WORLD_EXECUTE)
# Where `coretap link` records in which directories it made links.
set(state ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/var/lib/coretap)
file(MAKE_DIRECTORY ${state})
file(CHMOD ${state} PERMISSIONS ${directory_mode})
if(CPACK_GENERATOR STREQUAL "DEB")
  file(REMOVE ${usr}/share/doc/coretap/LICENSE)  # copyright has it
  file(COPY ${from}/deb/copyright DESTINATION ${usr}/share/doc/coretap FILE_PERMISSIONS ${mode})
  configure_file(${from}/deb/changelog ${usr}/share/doc/coretap/changelog.Debian COPYONLY)
  file(CHMOD ${usr}/share/doc/coretap/changelog.Debian PERMISSIONS ${mode})
  execute_process(COMMAND gzip -9n ${usr}/share/doc/coretap/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
  file(COPY ${from}/deb/overrides/coretap DESTINATION ${usr}/share/lintian/overrides
       FILE_PERMISSIONS ${mode} DIRECTORY_PERMISSIONS ${directory_mode})
elseif(CPACK_GENERATOR STREQUAL "RPM")
  file(COPY ${usr}/share/doc/coretap/LICENSE DESTINATION ${usr}/share/licenses/coretap
       FILE_PERMISSIONS ${mode} DIRECTORY_PERMISSIONS ${directory_mode})
  file(REMOVE ${usr}/share/doc/coretap/LICENSE)
  file(MAKE_DIRECTORY ${usr}/share/zsh)
  file(RENAME ${usr}/share/zsh/vendor-completions ${usr}/share/zsh/site-functions)
endif()
