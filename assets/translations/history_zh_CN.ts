<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>history</name>
    <message>
        <source>The history in {file} cannot be opened: {reason}. What is said now is forgotten when the app ends.</source>
        <translation>无法打开历史记录 {file}：{reason}。本次的对话在退出程序后不会保留。</translation>
    </message>
    <message>
        <source>The history in {file} is damaged. It was set aside as {aside}; a new one has begun.</source>
        <translation>历史记录 {file} 已损坏，已另存为 {aside}，并新建了一份。</translation>
    </message>
    <message>
        <source>The history in {file} is damaged, and it cannot be set aside: {reason}.</source>
        <translation>历史记录 {file} 已损坏，且无法另存：{reason}。</translation>
    </message>
    <message>
        <source>The history in {file} cannot be read or written: {reason}.</source>
        <translation>无法读写历史记录 {file}：{reason}。</translation>
    </message>
    <message>
        <source>The history in {file} cannot be removed: {reason}. Close the program that uses it and try again.</source>
        <translation>无法删除历史记录 {file}：{reason}。请关闭正在使用它的程序，然后重试。</translation>
    </message>
    <message>
        <source>it was written by a later version of this app; update the app</source>
        <translation>它由更新版本的本程序写入，请升级程序</translation>
    </message>
    <message>
        <source>This conversation is no longer in the history. Begin a new one.</source>
        <translation>历史记录中已没有这个对话，请新建一个。</translation>
    </message>
    <message>
        <source>another program is writing to it; close it and try again</source>
        <translation>另一个程序正在写入，请关闭该程序后重试</translation>
    </message>
    <message>
        <source>the disk is full; free some space and try again</source>
        <translation>磁盘已满，请腾出空间后重试</translation>
    </message>
    <message>
        <source>it is write-protected; correct the rights of the file and its folder</source>
        <translation>文件被写保护，请修正文件及其文件夹的权限</translation>
    </message>
    <message>
        <source>it cannot be opened; correct the rights of the file and its folder</source>
        <translation>文件无法打开，请修正文件及其文件夹的权限</translation>
    </message>
    <message>
        <source>The history needs your attention</source>
        <translation>历史记录需要您处理</translation>
    </message>
    <message>
        <source>Clear the history…</source>
        <translation>清空历史记录…</translation>
    </message>
    <message>
        <source>Clear the history</source>
        <translation>清空历史记录</translation>
    </message>
    <message>
        <source>Keep it</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>Remove all conversations and answers?</source>
        <translation>删除所有对话和回答？</translation>
    </message>
    <message>
        <source>They cannot be brought back. Export what you want to keep first.</source>
        <translation>删除后无法恢复。需要保留的内容请先导出。</translation>
    </message>
</context>
</TS>
