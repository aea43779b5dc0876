<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>meter</name>
    <message>
        <source>The memory is being read</source>
        <translation>正在读取内存占用</translation>
    </message>
    <message>
        <source>GPU memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>Main memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>DeskInfer {size}</source>
        <translation>DeskInfer {size}</translation>
    </message>
    <message>
        <source>its driver {size}</source>
        <translation>其驱动 {size}</translation>
    </message>
    <message>
        <source>Others {size}</source>
        <translation>其他程序 {size}</translation>
    </message>
    <message>
        <source>Others unknown</source>
        <translation>其他程序占用未知</translation>
    </message>
    <message>
        <source>Free {size} of {total}</source>
        <translation>空闲 {size}（共 {total}）</translation>
    </message>
    <message>
        <source>Not known: {reason}.</source>
        <translation>无法得知：{reason}。</translation>
    </message>
    <message>
        <source>The model works in main memory.</source>
        <translation>模型在内存中运行。</translation>
    </message>
    <message>
        <source>No NVIDIA GPU answers here; this is the program's own memory beside all of the machine's.</source>
        <translation>本机没有可用的 NVIDIA GPU；这里显示的是本程序占用的内存与整机内存。</translation>
    </message>
    <message>
        <source>the NVIDIA GPU at {address} is asleep and was not woken</source>
        <translation>位于 {address} 的 NVIDIA GPU 正在休眠，没有唤醒它</translation>
    </message>
    <message>
        <source>the package nvidia-ml-py is missing ({reason})</source>
        <translation>缺少 nvidia-ml-py 包（{reason}）</translation>
    </message>
    <message>
        <source>no NVIDIA driver answers ({reason})</source>
        <translation>NVIDIA 驱动没有响应（{reason}）</translation>
    </message>
    <message>
        <source>the NVIDIA driver failed ({reason})</source>
        <translation>NVIDIA 驱动出错（{reason}）</translation>
    </message>
    <message>
        <source>no NVIDIA driver is installed</source>
        <translation>未安装 NVIDIA 驱动</translation>
    </message>
    <message>
        <source>the NVIDIA GPU may be asleep, and to ask it would wake it</source>
        <translation>NVIDIA GPU 可能正在休眠，查询会唤醒它</translation>
    </message>
    <message>
        <source>last {minutes} minutes</source>
        <translation>最近 {minutes} 分钟</translation>
    </message>
    <message>
        <source>Freed for a full-screen program; the next action loads the model again</source>
        <translation>已为全屏程序释放；下次操作时重新加载模型</translation>
    </message>
    <message>
        <source>Freed after {minutes} min without use; the next action loads the model again</source>
        <translation>闲置 {minutes} 分钟后已释放；下次操作时重新加载模型</translation>
    </message>
    <message>
        <source>The model is loaded again</source>
        <translation>正在重新加载模型</translation>
    </message>
    <message>
        <source>The computer was asleep, and what lay in the GPU's memory may be damaged by that.</source>
        <translation>本机曾进入休眠，显存中的内容可能已因此损坏。</translation>
    </message>
    <message>
        <source>of GPU memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>of main memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>{size} {place} are free again. The next action loads the model anew.</source>
        <translation>已释放 {place} {size}。下次操作时会重新加载模型。</translation>
    </message>
    <message>
        <source>{freed} The answer that was being written has ended.</source>
        <translation>{freed}正在生成的回答已停止。</translation>
    </message>
    <message>
        <source>The model has left the memory</source>
        <translation>模型已移出内存</translation>
    </message>
    <message>
        <source>{size} {place}</source>
        <translation>{place} {size}</translation>
    </message>
    <message>
        <source>not here</source>
        <translation>此处不可用</translation>
    </message>
    <message>
        <source>{ours}, {size} of it the model</source>
        <translation>{ours}，其中模型 {size}</translation>
    </message>
</context>
</TS>
